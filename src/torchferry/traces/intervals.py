"""Sets of moments: sorted intervals that do not touch, as two columns of nanoseconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torchferry.traces.columns import Flags, Ints

_NONE = np.empty(0, np.int64)


class Intervals(NamedTuple):
    """A set of moments: intervals that are sorted, and apart from each other."""

    start: Ints = _NONE
    end: Ints = _NONE

    @classmethod
    def union(cls, start: Ints, end: Ints) -> Intervals:
        """The set of moments of intervals in any order, with overlaps."""
        kept = end > start
        start, end = start[kept], end[kept]
        if not len(start):
            return cls()
        order = np.argsort(start, kind="stable")
        start, end = start[order], np.maximum.accumulate(end[order])
        new = np.concatenate([[True], start[1:] > end[:-1]])
        last = np.concatenate([np.flatnonzero(new)[1:] - 1, [len(end) - 1]])
        return cls(start[new], end[last])

    @property
    def total(self) -> int:
        """How many nanoseconds it holds."""
        return int((self.end - self.start).sum())

    def __or__(self, other: object) -> Intervals:
        assert isinstance(other, Intervals)
        return Intervals.union(
            np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end])
        )

    def __and__(self, other: Intervals) -> Intervals:
        """The moments in both."""
        if not len(self.start) or not len(other.start):
            return Intervals()
        first = np.searchsorted(other.end, self.start, side="right")
        last = np.searchsorted(other.start, self.end, side="left")
        counts = np.maximum(last - first, 0)
        mine = np.repeat(np.arange(len(self.start)), counts)
        offset = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
        theirs = np.repeat(first, counts) + offset
        return Intervals.union(
            np.maximum(self.start[mine], other.start[theirs]), np.minimum(self.end[mine], other.end[theirs])
        )

    def __sub__(self, other: Intervals) -> Intervals:
        """The moments in the first only."""
        if not len(self.start) or not len(other.start):
            return self
        low, high = int(self.start[0]), int(self.end[-1])
        gap_start = np.concatenate([[low], other.end])
        gap_end = np.concatenate([other.start, [max(high, int(other.end[-1]))]])
        return self & Intervals.union(gap_start, gap_end)

    def holds(self, time: Ints) -> Flags:
        """Which moments lie in it."""
        if not len(self.start):
            return np.zeros(len(time), bool)
        row = np.searchsorted(self.start, time, side="right") - 1
        return (row >= 0) & (time < self.end[np.maximum(row, 0)])

    def covered(self, start: Ints, end: Ints) -> Ints:
        """How much of each of some spans lies in this."""
        return self._before(end) - self._before(start)

    def _before(self, time: Ints) -> Ints:
        """How much of this lies before each moment."""
        lengths = np.concatenate([[0], np.cumsum(self.end - self.start)])
        row = np.searchsorted(self.start, time, side="right") - 1
        inside = (
            np.where(row >= 0, np.minimum(time, self.end[row]) - self.start[row], 0) if len(self.start) else 0
        )
        found: Ints = np.where(row >= 0, lengths[np.maximum(row, 0)] + inside, 0)
        return found
