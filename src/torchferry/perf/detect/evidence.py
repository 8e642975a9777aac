"""Rows of the host's calls, added up to evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torchferry.perf.model import Evidence
from torchferry.text import Text
from torchferry.traces.columns import Columns, Interned, Ints

if TYPE_CHECKING:
    from torchferry.traces.model import Trace


MOST = 6  # that a diagnosis shows


class LineKey(NamedTuple):
    """What is shown on one line."""

    what: str | Text
    place: str = ""
    detail: str | Text = ""


def added_up(
    trace: Trace, keys: list[LineKey], time: Ints, start: Ints, most: int = MOST
) -> tuple[Evidence, ...]:
    """One for each key, the longest first: how often, how long, and where the longest of them is."""
    if not keys:
        return ()
    known = Interned()
    group = np.array([known[key] for key in keys], np.int64)
    seconds = np.bincount(group, weights=time)
    counts = np.bincount(group)
    longest = np.zeros(len(known), np.int64)
    order = np.argsort(time, kind="stable")
    longest[group[order]] = order  # the last one stays
    shown = np.lexsort((-counts, -seconds))[:most].tolist()
    names = list(known)
    return tuple(
        Evidence(
            names[at].what,
            names[at].detail,
            names[at].place,
            int(counts[at]),
            float(seconds[at]) / 1e9,
            min(trace.share(float(seconds[at])), 1.0),  # several threads may be at it together
            int(start[longest[at]]) / 1e9,
        )
        for at in shown
    )


def by_name_and_place(trace: Trace, rows: Ints, most: int = MOST) -> tuple[Evidence, ...]:
    """Rows of `host`."""
    names = [trace.names[number] for number in trace.host.name[rows].tolist()]
    keys = [LineKey(name, place) for name, place in zip(names, trace.places(rows), strict=True)]
    return added_up(trace, keys, trace.host.duration[rows], trace.host.start[rows], most)


def by_name(trace: Trace, events: Columns, most: int = MOST) -> tuple[Evidence, ...]:
    """Any events."""
    keys = [LineKey(trace.names[number]) for number in events.name.tolist()]
    return added_up(trace, keys, events.duration, events.start, most)
