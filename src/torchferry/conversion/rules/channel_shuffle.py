"""TF732 (opt-in): channels shuffled by view, transpose and view, which copies a tensor that is not contiguous."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchferry.conversion.program.blocks import block_around
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text

_SHUFFLED = Message(
    Text("Channel shuffle that copies a non-contiguous tensor", "通道打乱会拷贝非连续张量"),
    why=Text("The copy is slow on some accelerators.", "该拷贝在部分加速卡上较慢。"),
    do=Text(
        "Call `torchferry.perf.affinity.channel_shuffle({tensor}, {groups})`, which picks channels by index "
        "with the same result. With a `torch.cat` before and a chunk after it, use `ChannelShuffle`.",
        "请调用 `torchferry.perf.affinity.channel_shuffle({tensor}, {groups})`，它按索引选取通道，结果相同。若前有 `torch.cat`"
        "、后有 chunk，请使用 `ChannelShuffle`。",
    ),
)
_RESHAPES = ("view", "reshape")
# Dimensions of a batch of images with groups of channels; with fewer they may be tokens and heads.
_GROUPED = 5
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Assert, ast.Return)
_NEAR = 4  # statements between which names are followed


class _MethodStep(NamedTuple):
    """`tensor.name(*arguments)`, or `torch.name(tensor, *arguments)`."""

    name: str
    tensor: ast.expr
    arguments: list[ast.expr]


class _Grouping(NamedTuple):
    """Channels viewed as groups: (batch, groups, channels of each, height, width)."""

    tensor: ast.expr
    sizes: list[ast.expr]  # of unflatten, which names no others, those of the groups alone
    place: int  # in the list of statements

    @property
    def is_whole(self) -> bool:
        return len(self.sizes) >= _GROUPED

    @property
    def groups(self) -> str:
        count, each = (ast.unparse(size) for size in self.sizes[1 if self.is_whole else 0 :][:2])
        return count if count != "-1" else f"{ast.unparse(self.tensor)}.shape[1] // {each}"


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    """At the transpose, with what is viewed before it and how it is viewed after it."""
    swap = _step(site, site.node)
    if swap is None or not _swaps_groups(swap):
        return
    statements = block_around(site.scope.node, site.place.statement)
    here = statements.index(site.place.statement)
    grouping = _grouping(site, swap.tensor, statements, here)
    if grouping is not None and _is_joined(site, grouping, statements, here):
        tensor = ast.unparse(grouping.tensor)
        yield site.remark(Kind.RISK, _SHUFFLED.format(tensor=tensor, groups=grouping.groups))


def _step(site: Site[ast.Call], node: ast.expr) -> _MethodStep | None:
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Attribute):
        return None
    given = list(node.args)
    tensor = given.pop(0) if site.qualified(node.func).startswith("torch.") and given else node.func.value
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = given[0].elts
    return _MethodStep(node.func.attr, tensor, given)


def _swaps_groups(step: _MethodStep) -> bool:
    numbers = [ast.unparse(item) for item in step.arguments]
    if step.name == "transpose":
        return sorted(numbers) == ["1", "2"]
    swapped = ["0", "2", "1", *(str(axis) for axis in range(3, len(numbers)))]
    return step.name == "permute" and len(numbers) >= _GROUPED and numbers == swapped


def _grouping(
    site: Site[ast.Call], tensor: ast.expr, statements: list[ast.stmt], here: int
) -> _Grouping | None:
    value, place = _value(tensor, statements, here)
    step = _step(site, value)
    if step is None:
        return None
    if step.name in _RESHAPES and len(step.arguments) >= _GROUPED:
        return _Grouping(step.tensor, step.arguments, place)
    if step.name == "unflatten" and isinstance(value, ast.Call) and len(value.args) == 2:
        axis, sizes = value.args
        if ast.unparse(axis) == "1" and isinstance(sizes, (ast.Tuple, ast.List)) and len(sizes.elts) == 2:
            return _Grouping(step.tensor, sizes.elts, place)
    return None


def _is_joined(site: Site[ast.Call], grouping: _Grouping, statements: list[ast.stmt], here: int) -> bool:
    """Whether the transposed tensor is viewed with groups and channels as one dimension again."""
    for place in range(here, min(here + _NEAR, len(statements))):
        if not isinstance(statements[place], _SIMPLE):
            return False
        for node in ast.walk(statements[place]):
            step = _step(site, node) if isinstance(node, ast.Call) else None
            if step is None or not _joins(step, grouping, _bound(statements[grouping.place : place])):
                continue
            if _comes_from(step.tensor, site.node, statements, place):
                return True
    return False


def _joins(step: _MethodStep, grouping: _Grouping, rebound: set[str]) -> bool:
    after = [ast.unparse(item) for item in step.arguments]
    if step.name == "flatten":
        return after == ["1", "2"]
    if step.name not in _RESHAPES or not grouping.is_whole:
        return False
    before = [ast.unparse(item) for item in grouping.sizes]
    if after[:1] != before[:1] or after[2:] != before[3:] or "-1" in (before[0], *before[3:]):
        return False
    # The batch stays the first dimension, whatever is assigned: x.size(0) may be asked again.
    batch = [] if before[0].endswith((".size(0)", ".shape[0]")) else grouping.sizes[:1]
    used = (name for size in (*batch, *grouping.sizes[3:]) for name in ast.walk(size))
    return rebound.isdisjoint(name.id for name in used if isinstance(name, ast.Name))


def _comes_from(tensor: ast.expr, origin: ast.expr, statements: list[ast.stmt], place: int) -> bool:
    """Whether a value is that of another expression, made contiguous at most."""
    for _ in range(_NEAR):
        if tensor is origin:
            return True
        is_method = isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute)
        if is_method and tensor.func.attr == "contiguous":  # type: ignore[attr-defined]
            tensor = tensor.func.value  # type: ignore[attr-defined]
        else:
            tensor, place = _value(tensor, statements, place)
    return False


def _value(node: ast.expr, statements: list[ast.stmt], place: int) -> tuple[ast.expr, int]:
    """What a name was given shortly before, and where; the expression itself if that is not clear."""
    if not isinstance(node, ast.Name):
        return node, place
    for before in range(place - 1, max(place - 1 - _NEAR, -1), -1):
        statement = statements[before]
        if not isinstance(statement, _SIMPLE):
            break
        if node.id in _bound([statement]):
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                return statement.value, before
            break
    return node, place


def _bound(statements: list[ast.stmt]) -> set[str]:
    """The names that get a value in simple statements."""
    return {
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


RULE = Rule(
    id="TF732",
    name="channel-shuffle",
    summary=Text(
        "Reports channels that are shuffled by a transpose, which copies",
        "报告用转置打乱通道（会产生拷贝）的代码",
    ),
    triggers=("transpose(", "permute("),
    option="similar",
    nodes=(ast.Call,),
    check=_check,
)
