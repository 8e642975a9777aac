"""How far two tensors are apart, as far as statistics tell. No torch."""

from __future__ import annotations

import math

from torchferry.accuracy.compare.model import Difference
from torchferry.accuracy.model import Statistics


def distance(mine: Statistics, golden: Statistics) -> float:
    """Relative to golden's size; inf: not comparable."""
    if mine.checksum == golden.checksum and mine.count == golden.count:
        return 0.0
    counts = (mine.count, mine.nans, mine.infinities)
    if counts != (golden.count, golden.nans, golden.infinities):
        return math.inf
    return max(
        _relative(mine.mean, golden.mean, golden.rms),
        _relative(mine.rms, golden.rms, golden.rms),
        _relative(mine.minimum, golden.minimum, golden.largest),  # with the next, a wrong sign shows
        _relative(mine.maximum, golden.maximum, golden.largest),
    )


def distance_of(difference: Difference) -> float | None:
    """The same of a pair of tensors; None if one has no statistics."""
    mine, golden = difference.mine.statistics, difference.golden.statistics
    return None if mine is None or golden is None else distance(mine, golden)


def _relative(mine: float, golden: float, size: float) -> float:
    if mine == golden:
        return 0.0
    return abs(mine - golden) / size if size else math.inf
