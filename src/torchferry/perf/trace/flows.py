"""Arrows of a trace that lead from an operator to its work on the device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torchferry.perf.trace.columns import Flags, Ints
from torchferry.perf.trace.times import INVALID


class Flows(NamedTuple):
    """The ends of arrows: those with the same link belong together."""

    link: Ints
    thread: Ints
    time: Ints
    is_start: Flags

    @classmethod
    def joined(cls, parts: list[Flows], origin: int) -> Flows:
        """All of several, with times since an origin."""
        if not parts:
            nothing = np.empty(0, np.int64)
            return cls(nothing, nothing, nothing, np.empty(0, bool))
        link, thread, time, is_start = (np.concatenate(column) for column in zip(*parts, strict=True))
        valid = time != INVALID
        return cls(link[valid], thread[valid], time[valid] - origin, is_start[valid])

    def origins(self, thread: Ints, time: Ints) -> tuple[Flags, Ints, Ints]:
        """For arrows that end at some threads and moments: which were found; the threads and moments they come from."""
        ends = ~self.is_start
        links_at = dict(
            zip(
                zip(self.thread[ends].tolist(), self.time[ends].tolist(), strict=True),
                self.link[ends].tolist(),
                strict=True,
            )
        )
        starts = dict(
            zip(self.link[self.is_start].tolist(), np.flatnonzero(self.is_start).tolist(), strict=True)
        )
        rows = np.array(
            [
                starts.get(links_at.get(place, -1), -1)
                for place in zip(thread.tolist(), time.tolist(), strict=True)
            ],
            np.int64,
        )
        found = rows >= 0
        return found, self.thread[rows[found]], self.time[rows[found]]
