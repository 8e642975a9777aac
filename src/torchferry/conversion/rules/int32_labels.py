"""TF705 (opt-in): class labels as int32, where the vendor's loss kernels want them so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.labels import LOSS_WORDS, find_labels
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.source.names import called_name
from torchferry.source.walk import WalkState, walk_lines
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
    "labels stay int64: CUDA's kernels, which this code keeps working on, take nothing else; "
    "torchferry.perf.affinity.cross_entropy takes int32 everywhere",
    "标签保持 int64：这份代码仍要在 CUDA 上运行，而 CUDA 的算子只接受 int64；"
    "torchferry.perf.affinity.cross_entropy 在任何设备上都接受 int32",
)
_LABELS = rb"(?:gt_)?(?:targets?|labels?)"
_NAMES = re.compile(rf"(?i)^{_LABELS.decode()}$")
_REGRESSION = re.compile(r"(?i)mse_?loss|l1_?loss|huber|binary_cross_entropy|bce(?:with|loss)|kl_?div")
_CASTS = ("int", "long", "float", "to", "type")
_MOVED = re.compile(rb"\b[^\W\d]\w*\.(?:to|cuda)\(")
_MOVES = tuple(
    f"{name}.{method}(" for name in ("target", "targets", "label", "labels") for method in ("to", "cuda")
)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    function = site.node.func
    methods = ("cuda", "to", site.target.vendor.tensor_method)
    if not isinstance(function, ast.Attribute) or function.attr not in methods:
        return
    if not isinstance(function.value, ast.Name) or _is_cast(site):
        return
    name = function.value.id
    if find_labels(site.module).are_labels(name) or _is_given_to_loss(site):
        if site.target.is_portable:
            yield site.remark(Kind.INFO, _CUDA_STAYS)
            return
        yield site.change(_CAST, site.module.insertion_after(site.node, ".int()"), needs_prelude=False)
    elif _NAMES.match(name) and not _is_for_regression(site):
        yield site.remark(Kind.TODO, _UNCLEAR)


def _is_given_to_loss(site: Site[ast.Call]) -> bool:
    """`F.nll_loss(output, target.to(device))`"""
    call = site.parent
    is_loss = isinstance(call, ast.Call) and called_name(call) in ("cross_entropy", "nll_loss")
    return is_loss and site.node in call.args[1:2]  # type: ignore[union-attr]


def _is_for_regression(site: Site[ast.Call]) -> bool:
    """`F.mse_loss(output, target.to(device))`, or a module whose losses are all of this sort: no classes."""
    if isinstance(site.parent, ast.Call) and _REGRESSION.search(called_name(site.parent)):
        return True
    data = site.module.data
    return (
        not any(word.encode() in data for word in LOSS_WORDS)
        and _REGRESSION.search(site.module.decoded.text) is not None
    )


def _is_cast(site: Site[ast.Call]) -> bool:
    """Whether the move is followed by a cast, or is one itself."""
    if any("dtype" in (keyword.arg or "") for keyword in site.node.keywords):
        return True
    if any(site.qualified(item).startswith("torch.") for item in site.node.args):
        return True
    return isinstance(site.parent, ast.Attribute) and site.parent.attr in _CASTS


def _restructure(context: FileContext) -> Iterator[Proposal]:
    module = context.module
    known = b"|".join(sorted(re.escape(name.encode()) for name in find_labels(module).of_losses))
    method = re.escape(context.target.vendor.tensor_method.encode())
    moved = rb"\b(?:%b|(?i:%b))\s*\.\s*(?:to|cuda|%b)\b" % (known or rb"(?!)", _LABELS, method)
    lines = sorted(module.lines_matching(re.compile(moved)))
    if not lines:
        return
    module.focus(lines)
    found: list[Proposal] = []

    def visit(node: ast.AST, place: WalkState) -> None:
        if isinstance(node, ast.Call):
            found.extend(_check(Site(context, node, place)))

    walk_lines(module, lines, {ast.Call: visit})
    yield from found


RULE = Rule(
    id="TF705",
    name="int32-labels",
    summary=Text("class labels as int32", "分类标签使用 int32"),
    triggers=(*LOSS_WORDS, *_MOVES),
    option="int32_labels",
    restructure=_restructure,
    worth=lambda data: _MOVED.search(data) is not None,
)
