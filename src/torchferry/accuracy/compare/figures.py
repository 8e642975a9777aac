"""Measures pairs of tensors of two records: from the mapped files, in pieces. No torch.

Any number of threads may ask at once: the kernels let the others run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from torchferry.accuracy.file.contents import shaped
from torchferry.accuracy.judge.model import Difference
from torchferry.accuracy.model import Metrics, TensorRecord
from torchferry.accuracy.native.differences import NONE_WRONG, Measuring, metrics_of, pieces

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

Array = np.ndarray[Any, Any]

WIDTH = 32  # signs of a picture
# What may be held of the files before it is given back: the system counts mapped pages as memory of this process.
_HELD_BYTES = 1 << 27
_REORDERED = 1 << 18  # elements that are put in another order at a time
_REMEMBERED = 1 << 13  # pairs of contents; what is not used again soon is measured again
NO_CONTENTS, OTHER_SHAPE, OTHER_SORT = "statistics", "shape", "dtype"  # why there are no figures


@dataclass(frozen=True)
class _Found:
    metrics: Metrics
    picture: str


class Figures:
    """Differences of the tensors of two records."""

    def __init__(self, mine: Record, golden: Record) -> None:
        self._mine, self._golden = mine, golden
        self._found: dict[tuple[object, ...], _Found] = {}  # the last ones
        self._earlier: dict[tuple[object, ...], _Found] = {}  # those before
        self._held = 0
        self._lock = threading.Lock()

    def difference(self, mine: TensorRecord, golden: TensorRecord) -> Difference:
        """How far mine is from golden, and where; positions are those of golden's elements in its file."""
        reason = _obstacle(mine, golden)
        if reason:
            return Difference(mine, golden, None, reason=reason)
        key = (mine.offset, *_layout(mine), golden.offset, *_layout(golden))
        found = self._found.get(key) or self._earlier.get(key)
        if found is None:
            found = self._measure(mine, golden)
        if len(self._found) >= _REMEMBERED:  # all of a long record would fill the memory
            self._found, self._earlier = {}, self._found
        self._found[key] = found
        return Difference(mine, golden, found.metrics, found.picture)

    def _measure(self, mine: TensorRecord, golden: TensorRecord) -> _Found:
        measuring = Measuring(mine.dtype, golden.dtype)
        sums = measuring.sums(self._pieces(mine, golden))
        metrics = metrics_of(sums, golden.dtype)
        if measuring.is_right(sums):
            return _Found(metrics, NONE_WRONG * min(WIDTH, sums.count))
        drawn = measuring.picture(self._pieces(mine, golden), sums.count, sums.golden_rms, WIDTH)
        return _Found(metrics, drawn)

    def _pieces(self, mine: TensorRecord, golden: TensorRecord) -> Iterator[tuple[Array, Array]]:
        """Flat arrays of components that belong together, in the order in which golden lies in its file."""
        x, y = self._mine.array(mine), self._golden.array(golden)
        if _layout(mine)[1:] == _layout(golden)[1:]:
            flat = iter([(x, y)])
        else:
            flat = _in_golden_order(shaped(x, mine), shaped(y, golden))
        for x_block, y_block in flat:
            for piece in pieces(x_block, y_block, mine.dtype, golden.dtype):
                yield piece
                self._count(piece[0].nbytes + piece[1].nbytes)

    def _count(self, nbytes: int) -> None:
        """Give back what was read, now and then."""
        with self._lock:
            self._held += nbytes
            if self._held < _HELD_BYTES:
                return
            self._held = 0
        self._mine.release()
        self._golden.release()


def _obstacle(mine: TensorRecord, golden: TensorRecord) -> str:
    """Why two tensors can't be held against each other."""
    if mine.unread or golden.unread:
        return mine.unread or golden.unread
    if mine.shape != golden.shape:
        return OTHER_SHAPE
    if mine.dtype.startswith("complex") != golden.dtype.startswith("complex"):
        return OTHER_SORT
    if mine.offset is None or golden.offset is None:  # a view that nobody has read
        return NO_CONTENTS
    return ""


def _layout(tensor: TensorRecord) -> tuple[object, ...]:
    """Tensors in which all but the dtype is equal have their elements in the same order."""
    order = tensor.stride if tensor.is_dense else tuple(min(step, 1) for step in tensor.stride)
    return tensor.dtype, tensor.shape, tensor.is_dense, order


def _in_golden_order(mine: Array, golden: Array) -> Iterator[tuple[Array, Array]]:
    """Small flat copies of two arrays of one shape. What is repeated in both is taken once."""
    once = tuple(
        slice(0, 1) if x == y == 0 else slice(None) for x, y in zip(mine.strides, golden.strides, strict=True)
    )
    order = sorted(range(golden.ndim), key=lambda dimension: -golden.strides[dimension])
    yield from _blocks(mine[once].transpose(order), golden[once].transpose(order))


def _blocks(mine: Array, golden: Array) -> Iterator[tuple[Array, Array]]:
    if mine.size <= _REORDERED or mine.ndim == 0:
        yield mine.reshape(-1), golden.reshape(-1)
        return
    inner = mine[0].size
    step = max(_REORDERED // inner, 1)
    for start in range(0, mine.shape[0], step):
        if inner > _REORDERED:
            yield from _blocks(mine[start], golden[start])
        else:
            yield mine[start : start + step].reshape(-1), golden[start : start + step].reshape(-1)
