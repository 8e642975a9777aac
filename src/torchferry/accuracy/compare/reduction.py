"""What a reduction over ranks has made of their gradients: their mean, their sum, or something else. No torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from torchferry.accuracy.compare.layouts import Array, SampleRows, root_mean_square

_CLEAR = 0.02  # of a weight, by which it may be off 1 / N or 1
_DEPENDENT = 1e-6  # of the largest, below which gradients of ranks can't be told apart
_UNEXPLAINED = 0.02  # of a reduced gradient, that the gradients of the ranks may leave


class ReductionKind(str, Enum):
    """What became of the gradients of the ranks."""

    MEAN = "mean"
    SUM = "sum"
    SCALED = "scaled"  # all alike, times something else
    LOST = "lost"  # those of some ranks are not in it
    OWN = "own"  # each rank keeps its own
    UNEVEN = "uneven"  # some count more than others
    APART = "apart"  # the ranks come to different results
    OTHER = "other"  # no sum of them at all
    UNKNOWN = "unknown"  # too few elements, or all alike, to tell


@dataclass(frozen=True)
class Reduction:
    """What was made of one gradient, by rank."""

    kind: ReductionKind
    factor: float = 1.0  # by which each gradient was multiplied
    ranks: tuple[int, ...] = ()  # whose gradients are lost, or that have another result than the first


def reduction_of(before: Sequence[Array], after: Sequence[Array]) -> Reduction:
    """How the gradients after a reduction follow from those before it, rank by rank."""
    weights = [weights_of(before, each) for each in after]
    if any(each is None for each in weights):
        return Reduction(ReductionKind.UNKNOWN)
    if any(each is not None and not each.size for each in weights):
        return Reduction(ReductionKind.OTHER)
    found = np.stack([each for each in weights if each is not None])
    count = len(before)
    is_own = np.abs(found - np.eye(*found.shape)).max(axis=1) < _CLEAR
    if len(after) > 1 and is_own.all():
        return Reduction(ReductionKind.OWN)
    others = tuple(int(at) for at in np.flatnonzero(np.abs(found - found[0]).max(axis=1) > _CLEAR / count))
    if others:
        return Reduction(ReductionKind.APART, ranks=others)
    return _of_one(found[0])


def _of_one(weights: Array) -> Reduction:
    count, largest = len(weights), float(np.abs(weights).max())
    lost = tuple(int(at) for at in np.flatnonzero(np.abs(weights) < _CLEAR * largest))
    if lost:
        return Reduction(ReductionKind.LOST, float(weights.sum()), lost)
    mean = float(weights.mean())
    if float(np.abs(weights - mean).max()) > _CLEAR * abs(mean):
        return Reduction(ReductionKind.UNEVEN, mean)
    if abs(mean * count - 1) < _CLEAR:
        return Reduction(ReductionKind.MEAN, mean)
    if abs(mean - 1) < _CLEAR:
        return Reduction(ReductionKind.SUM, mean)
    return Reduction(ReductionKind.SCALED, mean)


def weights_of(before: Sequence[Array], after: Array) -> Array | None:
    """By what each rank's gradient was multiplied before they were added up; None: it can't be told; empty: the sum of
    no multiples of them is the result."""
    matrix = np.stack([each.reshape(-1).astype(np.float64) for each in before], axis=1)
    target = after.reshape(-1).astype(np.float64)
    if not np.isfinite(matrix).all() or not np.isfinite(target).all() or not np.abs(matrix).max(initial=0.0):
        return None
    squares = matrix.T @ matrix  # small, however large the gradient is
    found = np.linalg.pinv(squares, rcond=_DEPENDENT, hermitian=True) @ (matrix.T @ target)
    left = root_mean_square(matrix @ found - target)
    if left > _UNEXPLAINED * root_mean_square(target):
        return np.empty(0)
    is_unique = np.linalg.matrix_rank(
        squares, tol=_DEPENDENT * float(np.abs(squares).max()), hermitian=True
    ) == len(before)
    return found if is_unique and len(target) > len(before) else None


# How much each rank's loss counts its samples: a mean over a part of a batch counts them more than one over all of it.


def share_of_samples(many: Sequence[Array], few: Sequence[Array], rows: SampleRows) -> Array | None:
    """By rank, how often a gradient of its samples is that of the other side; None: this tensor has no rows."""
    if rows.of_ranks is None or many[0].ndim == 0 or few[0].ndim == 0:
        return None
    is_whole = len(few) > 1 and all(np.array_equal(few[0], each) for each in few[1:])
    whole = np.concatenate([each.reshape(len(each), -1) for each in (few[:1] if is_whole else few)])
    best, least = None, math.inf
    for variant in rows.variants(len(whole)):
        for is_minor in (False, True):
            found = [
                _share(each, whole, variant.positions(rank, len(whole), is_minor=is_minor))
                for rank, each in enumerate(many)
            ]
            left = max((one[1] for one in found if one is not None), default=math.inf)
            if None not in found and left < least:
                usual = [rows.count / max(1, len(each)) for each in rows.of_ranks]
                best, least = (
                    np.array(
                        [
                            _likely(one[0], one[1], each)
                            for one, each in zip(found, usual, strict=True)
                            if one is not None
                        ]
                    ),
                    left,
                )
    return best


def _share(each: Array, whole: Array, positions: Array | None) -> tuple[float, float] | None:
    """How often a rank's gradient is that of its rows in the whole, and what that leaves of it; None: it has other rows."""
    if positions is None or len(positions) != len(each):
        return None
    one, other = each.reshape(-1).astype(np.float64), whole[positions].reshape(-1).astype(np.float64)
    square = float(np.square(other).sum())
    if not np.isfinite(square) or square == 0.0:
        return math.nan, 0.0
    times = float((one * other).sum()) / square
    size = root_mean_square(one)
    return times, root_mean_square(one - times * other) / size if size else 0.0


def _likely(times: float, left: float, usual: float) -> float:
    """The share itself, where the gradients are multiples of each other; else what is usual, or once: the nearer one."""
    if math.isnan(times) or times <= 0:
        return usual
    if left <= _UNEXPLAINED:
        return times
    return usual if abs(math.log(times / usual)) <= abs(math.log(times)) else 1.0
