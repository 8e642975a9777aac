"""Says where in a tensor the wrong elements lie: at its end, in some channels, in tiles, at regular distances."""

from __future__ import annotations

import torch

from torchferry.accuracy.compare.model import Sort
from torchferry.accuracy.compare.patterns import Pattern, find_pattern
from torchferry.text import Text

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


def describe_places(wrong: torch.Tensor, mine: torch.Tensor) -> tuple[Sort, Text] | None:
    """The region that holds the wrong elements; None if they have none, or are nearly all."""
    return describe_region(wrong, are_zero=not bool(mine[wrong].any()))


def describe_region(wrong: torch.Tensor, *, are_zero: bool) -> tuple[Sort, Text] | None:
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
    if pattern.sort is Sort.TILE:
        return _TILE if pattern.tile[0] else _BLOCK
    return {Sort.TAIL: _TAIL, Sort.CHANNEL: _CHANNEL}.get(pattern.sort, _STRIPE)


def _listed(indices: tuple[int, ...]) -> str:
    return ", ".join(map(str, indices[:_LISTED])) + (" ..." if len(indices) > _LISTED else "")
