"""How the tensors of several processes make up one: the same on each, rows of a batch, pieces along an axis, or parts
of a sum. No torch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from torchferry.accuracy.file.contents import shaped
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import TensorRecord

Array = np.ndarray[Any, Any]
_WIDE = 1 << 20  # elements up to which differences are taken in double precision
_POINTS = 64.0  # a single element may be this much farther off than all are on average
_FUSED = (2, 3)  # products in one weight, each divided by itself: gate and up, or query, key and value
_READABLE = ("float", "bfloat16", "int", "uint", "bool")


class Way(str, Enum):
    """How a tensor of one process is spread over several."""

    SAME = "same"  # each has all of it
    ROWS = "rows"  # each has those of its samples
    SPLIT = "split"  # each has a piece along an axis
    FUSED = "fused"  # the same, of each of several parts along the axis
    SUM = "sum"  # added up they are it
    MEAN = "mean"
    ONE = "one"  # one rank has it, and the others have others


@dataclass(frozen=True)
class RankLayout:
    """How the tensors of several processes make up one."""

    way: Way
    axis: int | None = None
    parts: int = 1  # of a fused tensor


@dataclass(frozen=True)
class Fit:
    """The layout by which two sides come nearest to each other."""

    layout: RankLayout
    distance: float  # relative to the size of what they should be
    rank: int | None = None  # that is farthest off; None: no single one
    other: RankLayout = RankLayout(Way.SAME)  # of the side with fewer


@dataclass(frozen=True)
class SampleRows:
    """Which samples of the whole batch each process has; None: all of them."""

    of_ranks: tuple[Array, ...] | None = None
    count: int = 0  # in the whole batch
    _known: dict[int, SampleRows | None] = field(default_factory=dict, compare=False, repr=False)

    def variants(self, size: int) -> Iterator[SampleRows]:
        """What these rows may be to a tensor that has `size` rows in all: rows of its samples, or themselves rows of
        such samples, as tokens are."""
        for count in range(self.count, 0, -1):
            if self.count % count == 0 and size % count == 0:
                if count not in self._known:
                    self._known[count] = self if count == self.count else coarser(self, count)
                found = self._known[count]
                if found is not None:
                    yield found

    def positions(self, rank: int, size: int, *, is_minor: bool = False) -> Array | None:
        """Where the rows of a rank lie in a tensor that has `size` rows in all; None: it has no whole number a sample.

        `is_minor`: samples are the faster index of the rows.
        """
        assert self.of_ranks is not None
        each, rest = divmod(size, self.count)
        if rest or not each:
            return None
        samples = self.of_ranks[rank]
        inner = np.arange(each)
        if is_minor:
            return (inner[:, None] * self.count + samples[None, :]).reshape(-1)
        return (samples[:, None] * each + inner[None, :]).reshape(-1)


def coarser(rows: SampleRows, count: int) -> SampleRows | None:
    """The same division, where each sample has several of these rows, and there are so many samples; None: rows of one
    sample are on several ranks."""
    if rows.of_ranks is None or not count or rows.count % count or rows.count == count:
        return None
    each = rows.count // count
    found = [_sample_numbers(ranks, each, count) for ranks in rows.of_ranks]
    return (
        None
        if any(one is None for one in found)
        else SampleRows(tuple(one for one in found if one is not None), count)
    )


def _sample_numbers(rows: Array, each: int, count: int) -> Array | None:
    """Whose rows these are, if they are all of some samples: one after the other, or the first of all samples first."""
    if len(rows) % each:
        return None
    together = rows.reshape(-1, each)
    if np.array_equal(together, (together[:, :1] // each) * each + np.arange(each)):
        return together[:, 0] // each
    apart = rows.reshape(each, -1)
    is_apart = np.array_equal(apart, apart[:1] + np.arange(each)[:, None] * count)
    return apart[0] if is_apart and (apart[0] < count).all() else None


def values_of(record: Record, tensor: TensorRecord) -> Array | None:
    """A tensor's elements as numbers that numpy knows; None where it has none."""
    if tensor.offset is None or not tensor.dtype.startswith(_READABLE) or tensor.dtype.startswith("float8"):
        return None
    found = shaped(record.array(tensor), tensor)
    if tensor.dtype == "bfloat16":
        return (found.astype(np.uint32) << 16).view(np.float32)
    if found.dtype == np.float64 or found.size <= _WIDE:
        return found.astype(np.float64)
    return found.astype(np.float32)


def root_mean_square(values: Array) -> float:
    """Of the finite elements; 0 where there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.square(values).mean()) if values.size else 0.0
    if math.isfinite(mean) and mean > 0.0:
        return math.sqrt(mean)
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    total = float(np.square(finite / largest).sum())  # the square of a large number may be none
    return largest * math.sqrt(total / values.size)


def distance(one: Array, other: Array, size: float = 0.0) -> float:
    """How far two tensors are apart, relative to the other's root mean square, or to `size` where that is larger; inf
    where a NaN or an infinity stands on one side only."""
    if one.size == 0:
        return 0.0
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.all():
        ours, theirs = one[~finite], other[~finite]
        if not np.array_equal(ours, theirs, equal_nan=True):
            return math.inf
        one, other = one[finite], other[finite]
        if one.size == 0:
            return 0.0
    apart = one - other
    off = root_mean_square(apart)
    if off == 0.0:
        return 0.0
    scale = max(root_mean_square(other), size)
    return max(off, float(np.abs(apart).max()) / _POINTS) / scale if scale else math.inf


def best_fit(
    many: Sequence[Array],
    few: Sequence[Array],
    rows: SampleRows,
    size: float,
    limit: float,
    ways: Collection[Way] = tuple(Way),
) -> Fit | None:
    """The layout by which both sides come nearest, the first within the limit; None: their shapes fit by none.

    `size` is what a distance is relative to where the tensor itself is smaller.
    """
    best: Fit | None = None
    for other, wholes in _options(few, SampleRows(), None):
        if other.way not in ways or max(distance(each, wholes[0], size) for each in wholes) > limit:
            continue  # the few are not alike themselves
        for layout, made in _options(many, rows, wholes[0].shape):
            if layout.way not in ways:
                continue
            found = Fit(layout, max(distance(each, wholes[0], size) for each in made), other=other)
            # of a mean each is off by less than itself, which tells nothing if it does not fit
            share = 2 * len(many) if layout.way in (Way.SUM, Way.MEAN) and found.distance > limit else 1
            if best is None or found.distance * share < best.distance:
                best = _with_rank(found, many, wholes[0], rows, size)
            if best.distance <= limit:
                return best
    return best


def made_up(arrays: Sequence[Array], layout: RankLayout) -> Array:
    """The whole, of the same on each rank or of pieces along an axis."""
    if layout.way is Way.SPLIT and layout.axis is not None:
        return np.concatenate(arrays, layout.axis)
    return arrays[0]


def _options(
    arrays: Sequence[Array], rows: SampleRows, shape: tuple[int, ...] | None
) -> Iterator[tuple[RankLayout, Sequence[Array]]]:
    """What the tensors of all ranks may make up, of this shape if one is given; several that should be equal."""
    first = arrays[0]
    are_alike = all(each.shape == first.shape for each in arrays)
    if are_alike and shape in (None, first.shape):
        yield RankLayout(Way.SAME), arrays
    if len(arrays) == 1:
        return
    if first.ndim:
        yield from ((layout, [made]) for layout, made in _joined(arrays, rows, shape))
    if are_alike and shape in (None, first.shape):
        total = np.sum(np.stack(arrays), axis=0)
        yield RankLayout(Way.SUM), [total]
        yield RankLayout(Way.MEAN), [total / len(arrays)]


def _joined(
    arrays: Sequence[Array], rows: SampleRows, shape: tuple[int, ...] | None
) -> Iterator[tuple[RankLayout, Array]]:
    for axis in range(arrays[0].ndim):
        rests = {(*each.shape[:axis], *each.shape[axis + 1 :]) for each in arrays}
        if len({each.ndim for each in arrays}) > 1 or len(rests) > 1:
            continue
        length = sum(each.shape[axis] for each in arrays)
        whole = (*arrays[0].shape[:axis], length, *arrays[0].shape[axis + 1 :])
        if shape is not None and whole != shape:
            continue
        variants = [_by_rows(arrays, each, axis, whole) for each in rows.variants(length)]
        yield from ((RankLayout(Way.ROWS, axis), made) for found in variants[:1] for made in found)
        joined = np.concatenate(arrays, axis)
        yield RankLayout(Way.SPLIT, axis), joined
        for parts in _FUSED:
            if shape is not None and all(each.shape[axis] % parts == 0 for each in arrays):
                pieces = zip(*(np.split(each, parts, axis) for each in arrays), strict=True)
                made = np.concatenate([piece for ranks in pieces for piece in ranks], axis)
                yield RankLayout(Way.FUSED, axis, parts), made
        yield from ((RankLayout(Way.ROWS, axis), made) for found in variants[1:] for made in found)


def _by_rows(arrays: Sequence[Array], rows: SampleRows, axis: int, whole: tuple[int, ...]) -> Iterator[Array]:
    """The whole, if the axis is one of samples, or of samples and what each of them has several of."""
    if rows.of_ranks is None or len(rows.of_ranks) != len(arrays):
        return
    for is_minor in (False, True):
        every = [rows.positions(rank, whole[axis], is_minor=is_minor) for rank in range(len(arrays))]
        if any(at is None or len(at) != each.shape[axis] for at, each in zip(every, arrays, strict=True)):
            continue
        made = np.zeros(whole, arrays[0].dtype)
        view = np.moveaxis(made, axis, 0)
        for at, each in zip(every, arrays, strict=True):
            view[at] = np.moveaxis(each, axis, 0)
        yield made


def _with_rank(found: Fit, many: Sequence[Array], whole: Array, rows: SampleRows, size: float) -> Fit:
    """With the rank that is farthest off, where there is one to name."""
    layout = found.layout
    if layout.way is Way.SAME:
        parts = [whole] * len(many)
    elif layout.way is Way.ROWS and rows.of_ranks is not None and layout.axis is not None:
        view = np.moveaxis(whole, layout.axis, 0)
        every = [rows.positions(rank, len(view)) for rank in range(len(many))]
        parts = [view[each] for each in every if each is not None]
        many = [np.moveaxis(each, layout.axis, 0) for each in many]
    else:
        return found
    if any(one.shape != other.shape for one, other in zip(many, parts, strict=False)):
        return found
    scale = max(size, root_mean_square(whole))
    off = [distance(one, other, scale) for one, other in zip(many, parts, strict=False)]
    worst = max(range(len(off)), key=off.__getitem__, default=None)
    if worst is None or sum(each >= off[worst] / 2 for each in off) > 1:  # it is not one of them
        return found
    return replace(found, rank=worst)
