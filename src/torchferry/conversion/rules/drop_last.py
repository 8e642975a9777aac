"""TF702 (opt-in): batches of one shape: the last, smaller one is dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import set_argument
from torchferry.conversion.loaders import DATA_LOADERS, LoaderUse, argument, makes_loader, use_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text

_DROPPED = Text(
    "Last, smaller batch dropped, so that every step has the same shape",
    "丢弃最后不足一批的数据，使每步形状相同",
)
_EVALUATES = Message(
    Text("Last batch of an evaluation kept", "保留评估的最后一批"),
    why=Text("An evaluation needs every sample.", "评估需要全部样本。"),
    do=Text("If its shape costs a compilation, pad it.", "若其形状引起重新编译，可补齐。"),
)

_UNCLEAR = Message(
    Text("DataLoader for training or evaluation", "用于训练或评估的 DataLoader"),
    why=Text("The code does not say which.", "代码没有说明是哪一种。"),
    do=Text("If it is for training, write `drop_last=True`.", "若用于训练，请写 `drop_last=True`。"),
)
_BEFORE_DROP_LAST = 8  # parameters of DataLoader


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    if not makes_loader(site) or _others_make_batches(site.node):
        return
    edits = set_argument(site, "drop_last", "True")
    use = use_of(site)
    if edits and use is LoaderUse.EVALUATION:
        yield site.remark(Kind.INFO, _EVALUATES)
    elif edits and use is LoaderUse.UNKNOWN:
        yield site.remark(Kind.TODO, _UNCLEAR)
    elif edits:
        yield site.change(_DROPPED, *edits, needs_prelude=False)


def _others_make_batches(call: ast.Call) -> bool:
    """With a batch sampler, and where the dataset hands out whole batches, the loader takes no drop_last."""
    size = argument(call, "batch_size")
    return (
        argument(call, "batch_sampler") is not None
        or (isinstance(size, ast.Constant) and size.value is None)
        or len(call.args) > _BEFORE_DROP_LAST
    )


RULE = Rule(
    id="TF702",
    name="drop-last",
    summary=Text(
        "Sets `drop_last=True` in data loaders for training", "为训练用 DataLoader 设置 `drop_last=True`"
    ),
    triggers=("DataLoader",),
    option="drop_last",
    tracks=DATA_LOADERS,
    nodes=(ast.Call,),
    check=_check,
)
