"""The bars of a timeline that a page can hold: one step in full, what surrounds the evidence, the marks of all steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from torchferry.perf.model import Span
from torchferry.traces.columns import Columns, EventKind, Flags, Ints
from torchferry.traces.model import Trace
from torchferry.traces.names import module_of, place_of

STEPS, HOST, DEVICE, PYTHON, RUNTIME = 1000, 2000, 1500, 600, 300  # bars, at most
MOST_EXAMPLES = 60
STEP_LANE = "steps"
MERGED = "merged"  # the kind of a bar that stands for several short ones; its name is their number
_NARROW = 1000  # bars that lie apart by less than this fraction of the step become one
_GC = "torchferry::gc"
# Frames lie beside the operators of their thread: the two do not nest exactly. Calls of the runtime likewise.
_BESIDE = {EventKind.PYTHON: " · Python", EventKind.RUNTIME: " · runtime"}


class Timeline(NamedTuple):
    """The bars, and what they are of."""

    spans: tuple[Span, ...]
    step: int | None  # the step in full; None: the trace has none, and all of it is meant
    left_out: int  # events of that step that no bar of their own shows


class _Chosen(NamedTuple):
    spans: list[Span]
    left_out: int = 0


def timeline(trace: Trace, examples: Iterable[float] = ()) -> Timeline:
    """`examples`: moments in seconds around which everything is shown."""
    number, start, end = representative_step(trace)
    moments = np.array(sorted({int(each * 1e9) for each in examples})[:MOST_EXAMPLES], np.int64)
    parts = [
        _bars(trace, trace.device, np.full(len(trace.device), -1), (start, end), moments, DEVICE),
        _bars(trace, trace.host, trace.parent, (start, end), moments, HOST),
        _frames(trace, (start, end), moments),
        _without_merging(trace, trace.runtime, np.ones(len(trace.runtime), bool), (start, end), RUNTIME),
    ]
    steps = zip(*(column.tolist() for column in trace.steps[:3]), strict=True)
    spans = [
        Span(STEP_LANE, str(number), start / 1e9, (end - start) / 1e9, "step")
        for number, start, end in list(steps)[:STEPS]
    ]
    for part in parts:
        spans += part.spans
    return Timeline(tuple(spans), number, sum(part.left_out for part in parts))


def representative_step(trace: Trace) -> tuple[int | None, int, int]:
    """The step of median length: its number, beginning and end."""
    steps = trace.steps
    if not len(steps):
        return None, *trace.span
    order = np.argsort(steps.end - steps.start, kind="stable")
    at = int(order[len(order) // 2])
    return int(steps.number[at]), int(steps.start[at]), int(steps.end[at])


def _bars(
    trace: Trace, events: Columns, parent: Ints, window: tuple[int, int], moments: Ints, most: int
) -> _Chosen:
    """The longest events of the step as they are, the short ones merged; and whatever went on at some moments."""
    inside = _inside(events, window) & ~_is_step(trace, events)
    rows = np.flatnonzero(inside)
    kept = rows[np.argsort(-events.duration[rows], kind="stable")[:most]]
    short = np.setdiff1d(rows, kept)
    around = np.setdiff1d(_at_moments(events, moments), rows)
    around = around[~_is_step(trace, events.take(around))]
    merged = _merged(trace, events, parent, short, kept, (window[1] - window[0]) // _NARROW)
    return _Chosen(_spans(trace, events, np.concatenate([kept, around])) + merged, len(short))


def _merged(trace: Trace, events: Columns, parent: Ints, short: Ints, kept: Ints, narrow: int) -> list[Span]:
    """Neighbours with the same caller as one bar; what lies in one that was merged itself is part of that."""
    is_kept = np.zeros(len(events) + 1, bool)
    is_kept[kept] = True
    is_kept[-1] = True  # no caller
    outer = short[is_kept[parent[short]]]
    if not len(outer):
        return []
    outer = outer[np.lexsort((events.start[outer], parent[outer], events.thread[outer]))]
    start, end, thread, caller = events.start[outer], events.end[outer], events.thread[outer], parent[outer]
    apart = (start[1:] - end[:-1] > narrow) | (thread[1:] != thread[:-1]) | (caller[1:] != caller[:-1])
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    last = np.concatenate([first[1:], [len(outer)]]) - 1
    ends = np.maximum.reduceat(end, first)
    length = ends - start[first]
    longest = np.argsort(-length, kind="stable")[: len(kept)]
    alone = longest[first[longest] == last[longest]]
    several = longest[first[longest] != last[longest]]
    columns = (outer[first[several]], last[several] - first[several] + 1, ends[several])
    return _spans(trace, events, outer[first[alone]]) + [
        Span(
            trace.threads[int(events.thread[row])].name,
            str(count),
            int(events.start[row]) / 1e9,
            (end - int(events.start[row])) / 1e9,
            MERGED,
        )
        for row, count, end in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _frames(trace: Trace, window: tuple[int, int], moments: Ints) -> _Chosen:
    """The program's own functions, and modules; not those of PyTorch and Python."""
    wanted = trace.names_that(lambda name: place_of(name) or module_of(name))[trace.python.name]
    chosen = _without_merging(trace, trace.python, wanted, window, PYTHON)
    around = np.setdiff1d(_at_moments(trace.python, moments), np.flatnonzero(_inside(trace.python, window)))
    around = around[wanted[around]]
    return _Chosen(chosen.spans + _spans(trace, trace.python, around), chosen.left_out)


def _without_merging(
    trace: Trace, events: Columns, wanted: Flags, window: tuple[int, int], most: int
) -> _Chosen:
    rows = np.flatnonzero(_inside(events, window) & wanted)
    kept = rows[np.argsort(-events.duration[rows], kind="stable")[:most]]
    return _Chosen(_spans(trace, events, kept), len(rows) - len(kept))


def _inside(events: Columns, window: tuple[int, int]) -> Flags:
    return (events.start < window[1]) & (events.end > window[0])


def _is_step(trace: Trace, events: Columns) -> Flags:
    return np.isin(events.name, trace.name_ids(prefix="ProfilerStep"))


def _at_moments(events: Columns, moments: Ints) -> Ints:
    """What was going on then; a microsecond later, so that what begins there is found in spite of rounding."""
    found = [np.flatnonzero((events.start <= at + 1000) & (events.end > at)) for at in moments.tolist()]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _spans(trace: Trace, events: Columns, rows: Ints) -> list[Span]:
    chosen = events.take(rows)
    columns = (chosen.thread, chosen.name, chosen.start, chosen.duration, chosen.kind, chosen.signature)
    return [
        Span(
            trace.threads[thread].name + _BESIDE.get(EventKind(kind), ""),
            trace.names[name],
            start / 1e9,
            duration / 1e9,
            "gc" if trace.names[name].startswith(_GC) else EventKind(kind).name.lower(),
            trace.signature(signature).shapes_text,
        )
        for thread, name, start, duration, kind, signature in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
