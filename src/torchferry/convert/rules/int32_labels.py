"""TF705 (opt-in): class labels as int32, where the vendor's loss kernels want them so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.convert.labels import find_labels
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_CAST = Text(
    "int32 labels: the loss's kernel works on them without a cast of its own",
    "标签转为 int32：损失算子可直接使用，无需再转换",
)
_UNCLEAR = Text(
    "are these the labels of a classification loss, and no places for indexing? Then add `.int()`",
    "这是分类损失的标签、且不用于索引吗？若是，请加 `.int()`",
)
_CUDA_STAYS = Text(
    "labels stay int64: CUDA's kernels, which this code keeps working on, take nothing else",
    "标签保持 int64：这份代码仍要在 CUDA 上运行，而 CUDA 的算子只接受 int64",
)
_NAMES = re.compile(r"(?i)^(?:gt_)?(?:targets?|labels?)$")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in (
        "cuda",
        "to",
        site.target.vendor.tensor_method,
    ):
        return
    if not isinstance(function.value, ast.Name) or _is_cast(site):
        return
    name = function.value.id
    if find_labels(site.module).are_labels(name):
        if site.target.is_portable:
            yield site.remark(Kind.INFO, _CUDA_STAYS)
            return
        end = site.module.end(site.node)
        yield site.change(_CAST, Edit(end, end, ".int()"), needs_prelude=False)
    elif _NAMES.match(name):
        yield site.remark(Kind.TODO, _UNCLEAR)


def _is_cast(site: Site[ast.Call]) -> bool:
    """Whether the move is followed by a cast, or is one itself."""
    if any("dtype" in (keyword.arg or "") for keyword in site.node.keywords):
        return True
    if any(site.qualified(item).startswith("torch.") for item in site.node.args):
        return True
    return isinstance(site.parent, ast.Attribute) and site.parent.attr in (
        "int",
        "long",
        "float",
        "to",
        "type",
    )


RULE = register(
    Rule(
        id="TF705",
        name="int32-labels",
        summary=Text("class labels as int32", "分类标签使用 int32"),
        triggers=("cuda", ".to("),
        option="int32_labels",
        nodes=(ast.Call,),
        check=_check,
    )
)
