"""Which events lie in which others, and what they come to in each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchferry.traces.columns import Columns, EventKind, Flags, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.names import operator_of

if TYPE_CHECKING:
    from torchferry.traces.model import Trace


def lies_in(thread: Ints, time: Ints, around: Columns) -> Flags:
    """Which moments of threads lie in one of some events of the same thread."""
    found = np.zeros(len(time), bool)
    for number in np.unique(around.thread).tolist():
        asked = thread == number
        own = around.thread == number
        moments = Intervals.union(around.start[own], around.end[own])
        if not asked.any() or not len(moments.start):
            continue
        row = np.searchsorted(moments.start, time[asked], side="right") - 1
        found[asked] = (row >= 0) & (time[asked] < moments.end[np.maximum(row, 0)])
    return found


def marks(trace: Trace, prefix: str) -> Columns:
    """The annotations of the window whose names begin so."""
    found = trace.host.take(trace.host_rows(prefix=prefix)).where(EventKind.ANNOTATION)
    return found.take(trace.in_window(found))


def operators_in_window(trace: Trace) -> Ints:
    """Their rows in `host`."""
    return np.flatnonzero((trace.host.kind == EventKind.OPERATOR) & trace.in_window(trace.host))


def frames_with(trace: Trace, *parts: str) -> Columns:
    """Python's frames whose names hold one of some texts."""
    numbers = [number for number, name in enumerate(trace.names) if any(part in name for part in parts)]
    return trace.python.take(np.isin(trace.python.name, numbers))


def per_step(trace: Trace, count: float) -> float:
    """Of everything, where steps are not told apart."""
    return count / max(len(trace.steps), 1)


def is_on_host(trace: Trace, device: str) -> bool:
    """Whether the host itself is the device: a run on the CPU, not one whose device could not be traced."""
    return trace.is_host_only and device in ("", "cpu")


def outermost_operators(trace: Trace, rows: Ints) -> Ints:
    """The first operator in the program's own terms: aten::item of aten::_local_scalar_dense. -1 stays."""
    operators = np.array([bool(operator_of(name)) for name in trace.names], bool)
    outer: Ints = rows.copy()
    above = np.where(rows >= 0, trace.parent[rows], -1)
    while (above >= 0).any():
        outer = np.where((above >= 0) & operators[trace.host.name[above]], above, outer)
        above = np.where(above >= 0, trace.parent[above], -1)
    return outer
