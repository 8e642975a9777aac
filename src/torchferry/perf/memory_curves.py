"""Memory over time, with as many points as a page can draw; peaks are never left out."""

from __future__ import annotations

import numpy as np

from torchferry.perf.model import MemoryPoint
from torchferry.perf.trace.columns import Ints
from torchferry.perf.trace.model import Memory

MOST_POINTS = 1000


def has_totals(memory: Memory) -> bool:
    """Whether it is known how much was allocated, and not only by how much that changed."""
    return bool((memory.allocated >= 0).any())


def memory_curve(memory: Memory) -> tuple[MemoryPoint, ...]:
    """The points; memory that was not recorded is 0."""
    allocated = np.maximum(memory.allocated, 0) if has_totals(memory) else _running(memory)
    rows = _thinned(allocated)
    reserved = np.maximum(memory.reserved, 0)
    return tuple(
        MemoryPoint(start / 1e9, held, kept)
        for start, held, kept in zip(
            memory.start[rows].tolist(), allocated[rows].tolist(), reserved[rows].tolist(), strict=True
        )
    )


def _running(memory: Memory) -> Ints:
    """From the changes alone: what was there before is not known, so that the lowest is taken for 0."""
    sums: Ints = np.cumsum(memory.changed_by)
    return sums - min(int(sums.min()), 0) if len(sums) else sums


def _thinned(values: Ints) -> Ints:
    """The rows of the greatest and the least of each of some hundred pieces, and both ends."""
    if len(values) <= MOST_POINTS:
        return np.arange(len(values))
    pieces = np.array_split(np.arange(len(values)), MOST_POINTS // 2 - 1)
    peaks = [int(piece[0]) + int(values[piece].argmax()) for piece in pieces]
    lows = [int(piece[0]) + int(values[piece].argmin()) for piece in pieces]
    return np.unique([0, *peaks, *lows, len(values) - 1])
