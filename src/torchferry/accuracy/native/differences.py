"""How far one tensor is from another, in one pass over both, and where; compiled where there is a compiler.

Complex numbers are taken as pairs of real ones: counts are then of components, positions are of elements.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from torchferry.accuracy.model import Metrics
from torchferry.accuracy.native import standin
from torchferry.accuracy.native.library import COMPONENTS, NUMBERS, library
from torchferry.accuracy.native.standin import CSums, Sums

Array = np.ndarray[Any, Any]

# Components of one piece: its sums do not depend on how the work is shared out.
PIECE = 1 << 22
RIGHT, WRONG, NONFINITE = 0, 1, 2  # marks; the last: nan or infinity in one, something else in the other
# What is still called right: this much off, relative to the larger of the element and the root mean square of all.
# Far above what rounding leaves in sums of thousands, far below what a user would call another result.
ROUNDING = {
    "float64": 1e-9, "float32": 1e-3, "float16": 1e-2, "bfloat16": 6e-2, "float8_e4m3fn": 0.25, "float8_e5m2": 0.5,
    "float8_e4m3fnuz": 0.25, "float8_e5m2fnuz": 0.5,
}  # fmt: skip
# Signs of a picture: no element is wrong; up to 10, 20 ... 90 % are; more; some differ in nan or infinity.
NONE_WRONG, TENTHS, MOST, DIFFERS_IN_KIND = ".", "123456789", "#", "!"


Pieces = Iterable[tuple[Array, Array]]


def metrics_of(sums: Sums, golden_dtype: str) -> Metrics:
    """The figures that follow from sums over pairs of components."""
    is_integer = golden_dtype == "bool" or golden_dtype.startswith(("int", "uint"))
    metrics = sums.metrics(is_integer)
    if golden_dtype in COMPONENTS and metrics.worst > 0:
        return replace(metrics, worst=metrics.worst // 2)
    return metrics


def pieces(mine: Array, golden: Array, mine_dtype: str, golden_dtype: str) -> Iterator[tuple[Array, Array]]:
    """Two flat arrays of one length as contiguous arrays of components, of no more than PIECE each."""
    mine, golden = standin.components(mine, mine_dtype), standin.components(golden, golden_dtype)
    if mine.size != golden.size:
        raise ValueError(f"{mine.size} elements can't be held against {golden.size}")
    if mine.size <= PIECE:
        yield mine, golden
        return
    for start in range(0, mine.size, PIECE):
        yield mine[start : start + PIECE], golden[start : start + PIECE]


class Measuring:
    """What is done with the pieces of two tensors."""

    def __init__(self, mine_dtype: str, golden_dtype: str) -> None:
        self._numbers = NUMBERS[mine_dtype], NUMBERS[golden_dtype]
        self._limit = ROUNDING.get(COMPONENTS.get(golden_dtype, golden_dtype), 0.0)

    def sums(self, both: Pieces) -> Sums:
        """The sums over all pieces, in their order."""
        total: Sums | None = None
        for mine, golden in both:
            kernels = _kernels()
            if kernels is None:
                found = standin.differences_of(mine, golden, *self._numbers)
            else:
                sums = CSums()
                kernels[0](*self._tensors(mine, golden), ctypes.byref(sums))
                found = Sums.of_c(sums)
            if total is None:
                total = found
            else:
                total.add(found)
        return total or Sums()

    def _tensors(self, mine: Array, golden: Array) -> tuple[int, ...]:
        return mine.ctypes.data, self._numbers[0], golden.ctypes.data, self._numbers[1], mine.size

    def is_right(self, sums: Sums) -> bool:
        """Whether the sums say already that no element is wrong."""
        return not sums.wrong_nonfinite and sums.max_abs <= self._limit * sums.golden_rms

    def marks(self, mine: Array, golden: Array, golden_rms: float) -> Array:
        """RIGHT, WRONG or NONFINITE for each component of a piece, a byte each."""
        floor = self._limit * golden_rms
        kernels = _kernels()
        if kernels is None:
            return standin.marks_of(mine, golden, *self._numbers, self._limit, floor)
        marks = np.empty(mine.size, np.uint8)
        kernels[1](*self._tensors(mine, golden), self._limit, floor, marks.ctypes.data)
        return marks

    def picture(self, both: Pieces, count: int, golden_rms: float, width: int) -> str:
        """A sign for each part of `count` components."""
        parts = Parts(count, width)
        for mine, golden in both:
            parts.add(self.marks(mine, golden, golden_rms))
        return parts.signs()


class Parts:
    """Marks, as they come, counted for each sign of a picture."""

    def __init__(self, count: int, width: int) -> None:
        width = min(width, count)
        self._edges = [part * count // width for part in range(width + 1)] if width else [0]
        self._wrong = [0] * width
        self._nonfinite = [False] * width
        self._done = 0

    def add(self, marks: Array) -> None:
        """Count the next marks."""
        start, stop = self._done, self._done + marks.size
        self._done = stop
        if not marks.any():
            return
        for part, (low, high) in enumerate(zip(self._edges, self._edges[1:], strict=False)):
            if low < stop and high > start:
                inside = marks[max(low - start, 0) : high - start]
                self._wrong[part] += int(np.count_nonzero(inside))
                self._nonfinite[part] |= bool((inside == NONFINITE).any())

    def signs(self) -> str:
        """The picture as text."""
        sizes = [high - low for low, high in zip(self._edges, self._edges[1:], strict=False)]
        return "".join(
            DIFFERS_IN_KIND if nonfinite else _sign(wrong / size)
            for wrong, size, nonfinite in zip(self._wrong, sizes, self._nonfinite, strict=True)
        )


def _sign(share: float) -> str:
    if share == 0:
        return NONE_WRONG
    return MOST if share > 0.9 else TENTHS[max(math.ceil(share * 10 - 1e-9), 1) - 1]


@functools.cache
def _kernels() -> tuple[Callable[..., object], Callable[..., object]] | None:
    found = library()
    if found is None:
        return None
    tensors = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64)
    sums, marks = found.torchferry_differences, found.torchferry_marks
    sums.argtypes = (*tensors, ctypes.c_void_p)
    marks.argtypes = (*tensors, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
    sums.restype = marks.restype = None
    return sums, marks
