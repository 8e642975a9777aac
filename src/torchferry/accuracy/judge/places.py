"""Says where in a tensor the wrong elements lie: at its end, in some channels, in tiles, at regular distances."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchferry.accuracy.judge.model import ErrorKind
from torchferry.text import Text

# Where wrong elements lie: at the end, in some channels, in tiles, at every n-th place.
#
# All take an array of truth values with the shape of the tensor, in the order of its indices: what is
# wrong. Some of the elements of a wrong place may be right by chance, so a pattern needs most of its
# elements, not all of them.

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
        place = _wrong_tile(
            _added_up(counts, rows // _SIDES[-1], columns // _SIDES[-1]), planes, rows, columns
        )
        if place is not None:
            plane, row, column = place
            return Pattern(
                ErrorKind.TILE, start=(plane * height + row) * width + column, tile=(rows, columns)
            )
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
    """Every n-th element."""
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
    """The value that most have."""
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
    "it is wrong at {where} of dimension {pattern.dimension} (of {size}){what}",
    "维度 {pattern.dimension}（大小 {size}）的 {where} 处错误{what}",
)
_TILE = Text(
    "it is wrong in tiles of {pattern.tile[0]} x {pattern.tile[1]}{what}",
    "在 {pattern.tile[0]} x {pattern.tile[1]} 的块中错误{what}",
)
_BLOCK = Text(
    "{pattern.length} elements are wrong at every {pattern.distance}th place{what}",
    "每 {pattern.distance} 个元素中有 {pattern.length} 个错误{what}",
)
_STRIPE = Text(
    "every {pattern.distance}th element is wrong{what}", "每隔 {pattern.distance} 个元素错误{what}"
)
_ARE_ZERO = Text(": they are zero", "：均为零")
_NOTHING = Text("", "")


def describe_places(wrong: torch.Tensor, mine: torch.Tensor) -> tuple[ErrorKind, Text] | None:
    """The region that holds the wrong elements; None if they have none, or are nearly all."""
    return describe_region(wrong, are_zero=not bool(mine[wrong].any()))


def describe_region(wrong: torch.Tensor, *, are_zero: bool) -> tuple[ErrorKind, Text] | None:
    """The same, of a result that is not there as a whole."""
    pattern = find_pattern(wrong.numpy())
    if pattern is None:
        return None
    size = wrong.shape[pattern.dimension] if wrong.dim() else 1
    what = _ARE_ZERO if are_zero else _NOTHING
    text = _text(pattern).format(
        pattern=pattern, count=wrong.numel(), size=size, where=_listed(pattern.indices), what=what
    )
    return pattern.sort, text


def _text(pattern: Pattern) -> Text:
    if pattern.sort is ErrorKind.TILE:
        return _TILE if pattern.tile[0] else _BLOCK
    return {ErrorKind.TAIL: _TAIL, ErrorKind.CHANNEL: _CHANNEL}.get(pattern.sort, _STRIPE)


def _listed(indices: tuple[int, ...]) -> str:
    return ", ".join(map(str, indices[:_LISTED])) + (" ..." if len(indices) > _LISTED else "")
