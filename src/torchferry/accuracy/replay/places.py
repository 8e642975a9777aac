"""Where in a tensor the wrong elements lie: at its end, in some channels, in blocks, at regular distances."""

from __future__ import annotations

import torch

from torchferry.accuracy.compare.model import Sort
from torchferry.text import Text

_FULL = 0.8  # share of the elements of a region that are wrong if the region is
_MOST = 0.9  # share of a dimension above which it does not tell a region apart
_PERIODS = (2, 4, 8, 16, 32, 64, 128, 3, 5, 6, 7)

_TAIL = Text(
    "the last {wrong} of {count} elements are wrong{what}", "最后 {wrong} 个元素（共 {count} 个）错误{what}"
)
_CHANNEL = Text(
    "it is wrong at {where} of dimension {dimension} (of {size}){what}",
    "维度 {dimension}（大小 {size}）的 {where} 处错误{what}",
)
_END = Text(
    "it is wrong in the last {width} of {size} places of dimension {dimension}{what}",
    "维度 {dimension} 的最后 {width} 个位置（共 {size} 个）错误{what}",
)
_STRIPE = Text("every {period}th element is wrong{what}", "每隔 {period} 个元素错误{what}")
_ARE_ZERO = Text(": they are zero", "：均为零")
_NOTHING = Text("", "")


def pattern(wrong: torch.Tensor, mine: torch.Tensor) -> tuple[Sort, Text] | None:
    """The region that holds the wrong elements; None if they have none, or are all."""
    count, number = wrong.numel(), int(wrong.sum())
    if number == 0 or number > _MOST * count:
        return None
    what = _ARE_ZERO if not bool(mine[wrong].any()) else _NOTHING
    flat = wrong.reshape(-1)
    first = int(flat.double().argmax())
    if flat[first:].double().mean() >= _FULL and number > 1:
        return Sort.TAIL, _TAIL.format(wrong=count - first, count=count, what=what)
    found = _along_dimension(wrong, what)
    if found is not None:
        return found
    for period in _PERIODS:
        for start in range(period if number * period * 2 > count else 0):
            lane = flat[start::period]
            if lane.numel() > 3 and lane.double().mean() >= _FULL and int(lane.sum()) >= _MOST * number:
                return Sort.STRIPE, _STRIPE.format(period=period, what=what)
    return None


def _along_dimension(wrong: torch.Tensor, what: Text) -> tuple[Sort, Text] | None:
    for dimension, size in enumerate(wrong.shape):
        if size < 2:
            continue
        others = [each for each in range(wrong.dim()) if each != dimension]
        shares = wrong.double().mean(others) if others else wrong.double()
        at = (shares > 0).nonzero().reshape(-1).tolist()
        if not at or len(at) > _MOST * size or float(shares[at].min()) < _FULL / 2:
            continue
        if others and at == list(range(at[0], size)) and (len(at) > 1 or dimension == wrong.dim() - 1):
            return Sort.TAIL, _END.format(width=len(at), size=size, dimension=dimension, what=what)
        if others:
            where = ", ".join(map(str, at[:8])) + (" ..." if len(at) > 8 else "")
            return Sort.CHANNEL, _CHANNEL.format(where=where, dimension=dimension, size=size, what=what)
    return None
