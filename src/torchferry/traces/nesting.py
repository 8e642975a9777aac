"""Who called whom: nests the events of a thread by their times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torchferry.traces.columns import Columns, Ints


class Nested(NamedTuple):
    """Events in the order of Columns.in_order, and which of them each lies in."""

    events: Columns
    parent: Ints  # the row of the innermost event that a row lies in; -1: none

    @property
    def own_time(self) -> Ints:
        """Without the events that lie in it."""
        inside = self.parent >= 0
        inner = np.bincount(
            self.parent[inside], weights=self.events.duration[inside], minlength=len(self.events)
        )
        return np.maximum(self.events.duration - inner.astype(np.int64), 0)

    def enclosing(self, thread: Ints, time: Ints) -> Ints:
        """The innermost event of a thread at a time; -1: none."""
        found = np.full(len(time), -1, np.int64)
        events = self.events
        for number in np.unique(thread).tolist():
            first, last = np.searchsorted(events.thread, [number, number + 1])
            if first == last:
                continue
            asked = thread == number
            row = np.searchsorted(events.start[first:last], time[asked], side="right") - 1 + first
            found[asked] = self._outwards(np.where(row < first, -1, row), time[asked])
        return found

    def _outwards(self, rows: Ints, time: Ints) -> Ints:
        """To the first caller that was not over yet."""
        ends = self.events.end
        over = (rows >= 0) & (ends[rows] < time)
        while over.any():
            rows = np.where(over, self.parent[rows], rows)
            over = (rows >= 0) & (ends[rows] < time)
        return rows

    def outermost(self, wanted: Ints) -> Ints:
        """Of some rows those that lie in none of the others."""
        is_wanted = np.zeros(len(self.events), bool)
        is_wanted[wanted] = True
        above = self.parent[wanted]
        hidden = np.zeros(len(wanted), bool)
        while (above >= 0).any():
            hidden |= (above >= 0) & is_wanted[above]
            above = np.where(above >= 0, self.parent[above], -1)
        return wanted[~hidden]

    def within(self, wanted: Ints) -> Ints:
        """For every event the innermost of some rows that it lies in, or is; -1: none."""
        found = np.full(len(self.events), -1, np.int64)
        found[wanted] = wanted
        for row in np.flatnonzero(self.parent >= 0).tolist():  # callers come before what they call
            if found[row] < 0:
                found[row] = found[self.parent[row]]
        return found


def nest(events: Columns) -> Nested:
    """Events of several threads, in any order."""
    events = events.in_order()
    parent: list[int] = []
    open_ends: list[int] = []
    open_rows: list[int] = []
    current = -1
    rows = zip(events.thread.tolist(), events.start.tolist(), events.end.tolist(), strict=True)
    for row, (thread, start, end) in enumerate(rows):
        if thread != current:
            current = thread
            open_ends.clear()
            open_rows.clear()
        # One that ends with or after its beginning is around it; one that is over, or ends before it ends, is not.
        while open_ends and (open_ends[-1] <= start or open_ends[-1] < end):
            open_ends.pop()
            open_rows.pop()
        parent.append(open_rows[-1] if open_rows else -1)
        open_ends.append(end)
        open_rows.append(row)
    return Nested(events, np.array(parent, np.int64))
