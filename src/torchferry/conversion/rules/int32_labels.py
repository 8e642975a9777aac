"""TF705 (opt-in): class labels as int32, where the vendor's loss kernels want them so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, last_name
from torchferry.source.walk import WalkState, nodes_on_lines, walk_lines
from torchferry.text import Text

_LOSS_WORDS = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")
_FUNCTIONS = frozenset({"cross_entropy", "nll_loss"})
_MODULES = frozenset({"CrossEntropyLoss", "NLLLoss"})
# Kernels that take places or classes as int64 on every device.
_WANT_INT64 = frozenset(
    {"one_hot", "gather", "scatter", "scatter_", "scatter_add_", "index_select", "take_along_dim"}
    | {"embedding", "index_add_", "index_fill_", "bincount"}
)
_CAST = Text("Labels made int32, so that the loss needs no cast", "标签转为 int32，损失无需再转换")
_UNCLEAR = Message(
    Text("Tensor that may hold class labels", "可能是分类标签的张量"),
    why=Text("The code does not show whether it is also used as an index.", "代码没有显示它是否也用作索引。"),
    do=Text(
        "If it only holds labels of a classification loss, add `.int()`.",
        "若只是分类损失的标签，请加 `.int()`。",
    ),
)
_CUDA_STAYS = Message(
    Text("Labels kept as int64", "标签保持 int64"),
    why=Text(
        "The code still runs on CUDA, whose kernels take nothing else.",
        "这份代码仍要在 CUDA 上运行，而 CUDA 的算子只接受 int64。",
    ),
    do=Text(
        "To use int32 everywhere, call `torchferry.perf.affinity.cross_entropy`.",
        "若要在任何设备上使用 int32，请调用 `torchferry.perf.affinity.cross_entropy`。",
    ),
)
_LABELS = rb"(?:gt_)?(?:targets?|labels?)"
_NAMES = re.compile(rf"(?i)^{_LABELS.decode()}$")
_REGRESSION = re.compile(r"(?i)mse_?loss|l1_?loss|huber|binary_cross_entropy|bce(?:with|loss)|kl_?div")
_CASTS = ("int", "long", "float", "to", "type")
_MOVED = re.compile(rb"\b[^\W\d]\w*\.(?:to|cuda)\(")
_MOVES = tuple(
    f"{name}.{method}(" for name in ("target", "targets", "label", "labels") for method in ("to", "cuda")
)


@lru_cache(maxsize=2)  # asked for each copy of a module, and again when the result is checked
def _of_losses(module: PythonModule) -> frozenset[str]:
    """The variables that a module gives to a classification loss."""
    # `criterion = nn.CrossEntropyLoss().cuda()`: the names under which such a loss is called.
    losses = set(_FUNCTIONS)
    for node in nodes_on_lines(module, sorted(module.lines_with([word.encode() for word in _MODULES]))):
        if isinstance(node, ast.Assign) and any(
            called_name(item) in _MODULES for item in ast.walk(node.value)
        ):
            losses.update(filter(None, map(last_name, node.targets)))
    found: set[str] = set()
    words = [word.encode() for word in (*losses, *_MODULES)]
    for node in nodes_on_lines(module, sorted(module.lines_with(words))):
        # A loss is called by its name, or made on the spot: nn.CrossEntropyLoss()(x, y).
        if isinstance(node, ast.Call) and (called_name(node) in losses or called_name(node.func) in _MODULES):
            values = [*node.args[1:2], *(item.value for item in node.keywords if item.arg == "target")]
            found.update(value.id for value in values if isinstance(value, ast.Name))
    return frozenset(found)


@lru_cache(maxsize=2)
def _labels(module: PythonModule) -> frozenset[str]:
    """Those that are used for nothing else: what indexes must stay int64."""
    places: set[str] = set()
    labels = _of_losses(module)
    for node in ast.walk(module.tree) if labels else ():
        if isinstance(node, ast.Call) and called_name(node) in _WANT_INT64:
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            places.update(item.id for item in arguments if isinstance(item, ast.Name))
        elif isinstance(node, ast.Subscript):
            places.update(item.id for item in ast.walk(node.slice) if isinstance(item, ast.Name))
    return labels - places


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    function = site.node.func
    methods = ("cuda", "to", site.target.vendor.tensor_method)
    if not isinstance(function, ast.Attribute) or function.attr not in methods:
        return
    if not isinstance(function.value, ast.Name) or _is_cast(site):
        return
    name = function.value.id
    if name in _labels(site.module) or _is_given_to_loss(site):
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
        not any(word.encode() in data for word in _LOSS_WORDS)
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
    known = b"|".join(sorted(re.escape(name.encode()) for name in _of_losses(module)))
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
    summary=Text("Makes class labels int32", "将分类标签转为 int32"),
    triggers=(*_LOSS_WORDS, *_MOVES),
    option="int32_labels",
    restructure=_restructure,
    worth=lambda data: _MOVED.search(data) is not None,
)
