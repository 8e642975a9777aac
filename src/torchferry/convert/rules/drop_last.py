"""TF702 (opt-in): batches of one shape: the last, smaller one is dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.arguments import set_argument
from torchferry.convert.loaders import DATA_LOADERS, Use, makes_loader, use_of
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.text import Text

_DROPPED = Text(
    "drops the last, smaller batch: every step has the same shape, and nothing is compiled twice",
    "丢弃最后不足一批的数据，使每步形状相同，避免重复编译",
)
_EVALUATES = Text(
    "an evaluation needs every sample: its last batch stays; pad it if its shape costs a compilation",
    "评估需要全部样本：保留最后一批；若其形状引起重新编译，可补齐",
)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if not makes_loader(site) or any(keyword.arg == "batch_sampler" for keyword in site.node.keywords):
        return
    edits = set_argument(site, "drop_last", "True")
    if edits and use_of(site) is Use.EVALUATION:
        yield site.remark(Kind.INFO, _EVALUATES)
    elif edits:
        yield site.change(_DROPPED, *edits, needs_prelude=False)


RULE = register(
    Rule(
        id="TF702",
        name="drop-last",
        summary=Text("DataLoader(drop_last=True) for training", "训练用 DataLoader(drop_last=True)"),
        triggers=("DataLoader",),
        option="drop_last",
        tracks=DATA_LOADERS,
        nodes=(ast.Call,),
        check=_check,
    )
)
