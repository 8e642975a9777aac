"""What kind of error a wrong result looks like: tries explanations, one after the other, on its elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from torchferry.accuracy.judge.margins import Compared, flat
from torchferry.accuracy.judge.model import ErrorKind
from torchferry.text import Text

_EXPLAINED = 0.99  # of the elements that an explanation must fit
_SLACK = 4.0  # times the limit of an element: the explanation is computed from the right result, not as the kernel did
_FEW = 0.5  # share of wrong elements below which their places say most
_SMALL = 2.0**-5  # relative to the result: the most that too few digits explain
Sorted = tuple[ErrorKind, Text]

_NAN = Text(
    "{wrong} of {count} elements are NaN or infinite but should not be",
    "{count} 个元素中有 {wrong} 个不应为 NaN 或无穷",
)
_FINITE = Text(
    "{wrong} of {count} elements should be infinite or NaN", "{count} 个元素中有 {wrong} 个应为无穷或 NaN"
)
_ZERO = Text("all elements are zero", "所有元素均为零")
_UNWRITTEN = Text("unchanged by the call: nothing was written", "调用前后内容未变：没有被写入")
_STALE = Text(
    "holds the result of an earlier call (number {number})", "内容是更早一次调用（编号 {number}）的结果"
)
_SIGN = Text("wrong sign", "符号相反")
_SCALE = Text("{factor:.6g} times the correct value", "结果是正确值的 {factor:.6g} 倍")
_OFFSET = Text("a constant was added: {offset:.4g}", "结果多加了常数 {offset:.4g}")
_NOT_ADDED = Text("{name} was not added", "没有累加 {name}")
_ADDED_TWICE = Text("{name} was added twice", "{name} 多加了一次")
_TRANSPOSED = Text("its last two dimensions are swapped", "最后两维被转置")
_SHIFTED = Text(
    "its elements are shifted by {by} along dimension {dimension}", "元素沿维度 {dimension} 错位 {by}"
)
_PRECISION = Text(
    "rounded or accumulated with too few digits: its errors are {ratio:.3g} times the normal size",
    "舍入或累加的有效位数不足：误差是正常值的 {ratio:.3g} 倍",
)
_BIASED = Text(
    "its errors are small but biased: {ratio:.3g} times what chance allows",
    "误差很小但方向一致：是随机误差允许值的 {ratio:.3g} 倍",
)
_VALUES = Text("{wrong} of {count} elements are wrong", "{count} 个元素中有 {wrong} 个错误")


@dataclass(frozen=True)
class Context:
    """What else is known of the call: it may have come into the result."""

    shape: tuple[int, ...]
    before: torch.Tensor | None = None  # what a written argument held before
    addends: Sequence[tuple[str, torch.Tensor]] = field(default=())  # inputs that may have been left out
    # what the same operator gave before
    earlier: Callable[[], tuple[int, torch.Tensor] | None] = lambda: None
    # what other arguments would have given
    misread: Callable[[], Iterator[tuple[Text, torch.Tensor]]] = lambda: iter(())
    # what inputs would have given that were not there yet where the result is wrong
    unread: Callable[[torch.Tensor], Iterator[tuple[Text, torch.Tensor]]] = lambda _wrong: iter(())


def sort_of(compared: Compared, context: Context) -> Sorted:
    """The first explanation that fits."""
    wrong = compared.wrong
    count, number = compared.mine.numel(), int(wrong.sum())
    if compared.errors.nonfinite:
        is_mine = bool((~compared.mine.isfinite() & compared.right.isfinite()).any())
        text = (_NAN if is_mine else _FINITE).format(wrong=compared.errors.nonfinite, count=count)
        return ErrorKind.NAN if bool(compared.mine.isnan().any()) or not is_mine else ErrorKind.INFINITE, text
    if number == 0:
        return _of_means(compared)
    if (explained := next(_wholes(compared, context), None)) is not None:
        return explained
    if count == math.prod(context.shape):
        mine = compared.mine[wrong]
        found = describe_region(wrong.reshape(context.shape), are_zero=not bool(mine.any()))
        if found is not None:
            return found
    if number < _FEW * count and number * 100 < count:
        return ErrorKind.POINTS, _VALUES.format(wrong=number, count=count)
    if compared.errors.relative < _SMALL:
        return ErrorKind.PRECISION, _PRECISION.format(ratio=compared.errors.worst)
    return ErrorKind.VALUES, _VALUES.format(wrong=number, count=count)


def _of_means(compared: Compared) -> Sorted:
    """No element is beyond its limit: what all of them have in common is."""
    errors = compared.errors
    if not errors.bias > errors.mean_square:
        return ErrorKind.PRECISION, _PRECISION.format(ratio=errors.worst)
    factor = _factor(compared)
    if abs(factor - 1.0) > 1e-5 and _is_better(compared, compared.right * factor):
        return ErrorKind.SCALE, _SCALE.format(factor=factor)
    return ErrorKind.PRECISION, _BIASED.format(ratio=errors.bias)


def _wholes(compared: Compared, context: Context) -> Iterator[Sorted]:
    mine, right = compared.mine, compared.right
    if not bool(mine.any()):
        yield ErrorKind.ZERO, _ZERO
    if context.before is not None and torch.equal(mine, flat(context.before)):
        yield ErrorKind.UNWRITTEN, _UNWRITTEN
    earlier = context.earlier()
    if earlier is not None and _fits(compared, flat(earlier[1]), only_wrong=True):
        yield ErrorKind.STALE, _STALE.format(number=earlier[0])
    if _fits(compared, -right):
        yield ErrorKind.SIGN, _SIGN
    yield from _accumulations(compared, context)
    yield from _places_exchanged(compared, context.shape)
    for text, result in context.misread():
        if _fits(compared, flat(result)):
            yield ErrorKind.MISREAD, text
    for text, result in context.unread(compared.wrong):
        if _fits(compared, flat(result)):
            yield ErrorKind.LATE, text
    factor = _factor(compared)
    if _fits(compared, right * factor) and _is_better(compared, right * factor):
        yield ErrorKind.SCALE, _SCALE.format(factor=factor)
    offset = float((mine - right).median())
    if offset and _fits(compared, right + offset):
        yield ErrorKind.BIAS, _OFFSET.format(offset=offset)


def _accumulations(compared: Compared, context: Context) -> Iterator[Sorted]:
    addends = [*context.addends, *([("", context.before)] if context.before is not None else [])]
    for name, tensor in addends:
        try:
            addend = flat(tensor.expand(context.shape))
        except RuntimeError:
            continue
        if addend.shape != compared.right.shape or not bool(addend.any()):
            continue
        named = name or "the former content"
        if _fits(compared, compared.right - addend):
            yield ErrorKind.ACCUMULATE, _NOT_ADDED.format(name=named)
        if _fits(compared, compared.right + addend):
            yield ErrorKind.ACCUMULATE, _ADDED_TWICE.format(name=named)


def _places_exchanged(compared: Compared, shape: tuple[int, ...]) -> Iterator[Sorted]:
    if compared.right.numel() != math.prod(shape):
        return

    def fits(move: Callable[[torch.Tensor], torch.Tensor], share: float = _EXPLAINED) -> bool:
        right, limit = (move(each.reshape(shape)).reshape(-1) for each in (compared.right, compared.limit))
        return _fits(compared.with_limit(torch.maximum(compared.limit, limit)), right, share)

    if len(shape) >= 2 and min(shape[-2:]) > 1 and fits(lambda tensor: tensor.transpose(-1, -2)):
        yield ErrorKind.TRANSPOSED, _TRANSPOSED
    for dimension, length in enumerate(shape):
        for by in (1, -1) if length > 2 else ():
            if fits(lambda tensor, by=by, at=dimension: tensor.roll(by, at), 1.0 - 1.5 / length):  # type: ignore[misc]
                yield ErrorKind.SHIFTED, _SHIFTED.format(by=by, dimension=dimension)


def _fits(
    compared: Compared, explanation: torch.Tensor, share: float = _EXPLAINED, only_wrong: bool = False
) -> bool:
    """Whether the result is what the explanation says, where that is not what is right anyway."""
    if explanation.shape != compared.mine.shape:
        return False
    limit = compared.limit * _SLACK
    fits = (compared.mine - explanation).abs() <= limit
    tells = (explanation - compared.right).abs() > limit
    if only_wrong:
        tells = compared.wrong & (explanation != 0)
        return bool(tells.any()) and bool(fits[compared.wrong].double().mean() >= share)
    fitting = [float(each.double().mean()) for each in (fits[tells], fits)]
    return bool(tells.any()) and min(fitting) >= share


def _factor(compared: Compared) -> float:
    """By least squares; by the median where a few elements are far off."""
    right = torch.where(compared.right.isfinite() & compared.mine.isfinite(), compared.right, 0.0)
    total = float(right.square().sum())
    return float((right * compared.mine.nan_to_num(0.0, 0.0, 0.0)).sum()) / total if total else 1.0


def _is_better(compared: Compared, explanation: torch.Tensor) -> bool:
    left = (compared.mine - explanation).norm()
    return bool(left < 0.9 * (compared.mine - compared.right).norm())


# Where in a tensor the wrong elements lie: at its end, in some channels, in tiles, at every n-th place.
#
# All take an array of truth values with the shape of the tensor, in the order of its indices: what is wrong. Some of
# the elements of a wrong place may be right by chance, so a pattern needs most of its elements, not all of them.

Array = np.ndarray[Any, Any]

_MOST = 0.75  # of the elements of a place that is wrong
_LARGEST_PART = 0.75  # of a tensor in which a pattern can be seen
_LOOKED_AT = 1 << 22  # elements in which regular distances are sought
_SIDES = (128, 64, 32, 16, 8, 4)  # of tiles
_FEWEST = 3  # of what comes at regular distances


@dataclass(frozen=True)
class Pattern:
    """A pattern that wrong elements have."""

    sort: ErrorKind  # TAIL, CHANNEL, TILE, STRIPE
    start: int = 0  # of a tail; of the first stripe or tile, in elements
    distance: int = 0  # from one stripe or tile to the next, in elements
    length: int = 0  # of a tail; of a stripe or tile in a row
    dimension: int = -1  # of channels
    indices: tuple[int, ...] = ()  # of the channels that are wrong
    tile: tuple[int, int] = (0, 0)  # rows and columns


def find_pattern(wrong: Array) -> Pattern | None:
    """The simplest pattern there is."""
    if not wrong.any():
        return None
    return tail(wrong) or channels(wrong) or tiles(wrong) or stripes(wrong)


def tail(wrong: Array) -> Pattern | None:
    """All is right up to some element, and wrong from there to the end."""
    flat = wrong.reshape(-1)
    if not flat.any():
        return None
    start = int(flat.argmax())
    length = flat.size - start
    if start == 0 or length > _LARGEST_PART * flat.size:
        return None
    last = flat[flat.size - math.ceil(length / 4) :]
    is_dense = min(_share(flat[start:]), _share(last)) >= _MOST
    return Pattern(ErrorKind.TAIL, start=start, length=length) if is_dense else None


def channels(wrong: Array) -> Pattern | None:
    """Wrong only at some indices of a dimension, and there at most places; the fewest, if several dimensions fit."""
    fitting = [found for dimension in range(wrong.ndim) if (found := _channels_of(wrong, dimension))]
    return min(fitting, key=lambda found: len(found.indices) / wrong.shape[found.dimension], default=None)


def _channels_of(wrong: Array, dimension: int) -> Pattern | None:
    size = wrong.shape[dimension]
    if size == 1 or wrong.size // size <= _FEWEST:
        return None
    others = tuple(other for other in range(wrong.ndim) if other != dimension)
    counts = np.count_nonzero(wrong, axis=others)
    indices = np.flatnonzero(counts)
    if not 0 < indices.size <= _LARGEST_PART * size:
        return None
    if counts[indices].min() < _MOST * (wrong.size // size):
        return None
    return Pattern(ErrorKind.CHANNEL, dimension=dimension, indices=tuple(indices.tolist()))


def tiles(wrong: Array) -> Pattern | None:
    """Wrong in some tiles of the last two dimensions, or in blocks at regular distances; the largest tiles."""
    found = _tiles_of_planes(wrong.reshape(-1, *wrong.shape[-2:])) if wrong.ndim >= 2 else None
    if found:
        return found
    blocks = _regular(wrong)
    return Pattern(ErrorKind.TILE, *blocks) if blocks and blocks[2] > 1 else None


def _tiles_of_planes(planes: Array) -> Pattern | None:
    """The largest tiles first that fit more than once; a row or column alone is a channel."""
    height, width = planes.shape[1:]
    sizes = [
        (rows, columns)
        for rows, columns in itertools.product(_SIDES, _SIDES)
        if rows < height and columns < width
    ]
    counts = _added_up(planes, _SIDES[-1], _SIDES[-1])
    for rows, columns in sorted(sizes, key=lambda size: -size[0] * size[1]):
        in_tiles = _added_up(counts, rows // _SIDES[-1], columns // _SIDES[-1])
        place = _wrong_tile(in_tiles, planes, rows, columns)
        if place is not None:
            plane, row, column = place
            start = (plane * height + row) * width + column
            return Pattern(ErrorKind.TILE, start=start, tile=(rows, columns))
    return None


def _added_up(planes: Array, rows: int, columns: int) -> Array:
    """In tiles of so many rows and columns; what is left over at the edges is a tile as well."""
    down = np.add.reduceat(planes, np.arange(0, planes.shape[1], rows), axis=1, dtype=np.int32)
    found: Array = np.add.reduceat(down, np.arange(0, planes.shape[2], columns), axis=2, dtype=np.int32)
    return found


def _wrong_tile(counts: Array, planes: Array, rows: int, columns: int) -> tuple[int, int, int] | None:
    """Where the first one starts, if each tile is wrong in most places or in none."""
    heights, widths = (
        np.diff(np.append(np.arange(0, size, side), size))
        for size, side in zip(planes.shape[1:], (rows, columns), strict=True)
    )
    touched = counts > 0
    shares = (counts / np.outer(heights, widths))[touched]
    if shares.min() < _MOST or touched.mean() > _LARGEST_PART:
        return None
    plane, row, column = (int(axis[0]) for axis in np.nonzero(touched))
    return plane, row * rows, column * columns


def stripes(wrong: Array) -> Pattern | None:
    """Whether every n-th element is wrong."""
    found = _regular(wrong)
    return Pattern(ErrorKind.STRIPE, *found) if found and found[2] == 1 else None


def _regular(wrong: Array) -> tuple[int, int, int] | None:
    """Where runs of one length start, at one distance: start, distance, length. The first part stands for all."""
    flat = wrong.reshape(-1)
    start = int(flat.argmax())
    flat = flat[start : start + _LOOKED_AT]
    edges = np.flatnonzero(np.diff(flat.view(np.int8), prepend=0, append=0))
    starts, ends = edges[::2], edges[1::2]
    if starts.size < _FEWEST:
        return None
    distance, length = _usual(np.diff(starts)), _usual(ends - starts)
    if distance is None or length is None or length > _LARGEST_PART * distance:
        return None
    expected = np.arange(0, flat.size, distance)
    is_complete = flat[expected].mean() >= _MOST  # where runs are missing, they do not come regularly
    return (start, distance, length) if is_complete else None


def _usual(values: Array) -> int | None:
    found, counts = np.unique(values, return_counts=True)
    most = counts.argmax()
    return int(found[most]) if counts[most] >= _MOST * values.size else None


def _share(wrong: Array) -> float:
    return float(np.count_nonzero(wrong) / wrong.size)


_LISTED = 8  # channels

_TAIL = Text(
    "the last {pattern.length} of {count} elements are wrong{what}",
    "最后 {pattern.length} 个元素（共 {count} 个）错误{what}",
)
_CHANNEL = Text(
    "wrong at {where} of dimension {pattern.dimension} (size {size}){what}",
    "维度 {pattern.dimension}（大小 {size}）的 {where} 处错误{what}",
)
_TILE = Text(
    "wrong in tiles of {pattern.tile[0]} x {pattern.tile[1]}{what}",
    "在 {pattern.tile[0]} x {pattern.tile[1]} 的块中错误{what}",
)
_BLOCK = Text(
    "{pattern.length} elements are wrong in every {pattern.distance}{what}",
    "每 {pattern.distance} 个元素中有 {pattern.length} 个错误{what}",
)
_STRIPE = Text(
    "every {pattern.distance}th element is wrong{what}", "每隔 {pattern.distance} 个元素错误{what}"
)
_ARE_ZERO = Text(": they are zero", "：均为零")
_REGIONS = {
    ErrorKind.TAIL: _TAIL,
    ErrorKind.CHANNEL: _CHANNEL,
    ErrorKind.TILE: _TILE,
    ErrorKind.STRIPE: _STRIPE,
}


def describe_region(wrong: torch.Tensor, *, are_zero: bool) -> Sorted | None:
    """The region that holds the wrong elements; None if they have none, or are nearly all."""
    pattern = find_pattern(wrong.numpy())
    if pattern is None:
        return None
    is_block = pattern.sort is ErrorKind.TILE and not pattern.tile[0]
    text = (_BLOCK if is_block else _REGIONS[pattern.sort]).format(
        pattern=pattern,
        count=wrong.numel(),
        size=wrong.shape[pattern.dimension] if wrong.dim() else 1,
        where=", ".join(map(str, pattern.indices[:_LISTED]))
        + (" ..." if len(pattern.indices) > _LISTED else ""),
        what=_ARE_ZERO if are_zero else Text("", ""),
    )
    return pattern.sort, text
