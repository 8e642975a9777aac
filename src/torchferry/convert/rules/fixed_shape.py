"""TF702 (opt-in): batches of one shape and int32 labels, as the Ascend guide asks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.convert.arguments import DATA_LOADERS, set_argument
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.source.edits import Edit
from torchferry.text import Text

_DROPPED = Text(
    "drops the last, smaller batch: every step has the same shape", "丢弃最后不足一批的数据，使每步形状相同"
)
_INT32 = Text("int32 labels: the loss's kernel wants them", "标签转为 int32：损失算子需要")
_LABELS = re.compile(r"(?i)^(targets?|labels?)$")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if site.qualified(site.node.func) in DATA_LOADERS:
        if not any(keyword.arg == "batch_sampler" for keyword in site.node.keywords):
            edits = set_argument(site, "drop_last", "True")
            if edits:
                yield site.change(_DROPPED, *edits, needs_prelude=False)
        return
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr != "cuda":
        return
    if isinstance(function.value, ast.Name) and _LABELS.match(function.value.id):
        end = site.module.end(site.node)
        yield site.change(_INT32, Edit(end, end, ".int()"), needs_prelude=False)


RULE = register(
    Rule(
        id="TF702",
        name="fixed-shape",
        summary=Text("drop_last=True and int32 labels", "drop_last=True 与 int32 标签"),
        triggers=("DataLoader", "cuda"),
        option="fixed_shape",
        tracks=DATA_LOADERS,
        nodes=(ast.Call,),
        check=_check,
    )
)
