"""Evidence: the host's calls and the device's work, added up by name, place, shapes and types."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from torchferry.perf.model import Evidence
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import KernelGroup, KernelTable
from torchferry.text import Text
from torchferry.traces.columns import Columns, EventKind, Flags, Interned, Ints
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


class CallGroup(NamedTuple):
    """Calls of one operator with one signature."""

    operator: str
    signature: int
    calls: int
    time: int  # nanoseconds of all calls together
    longest: int  # the row of one of them


def work_time(trace: Trace) -> Ints:
    """Of each row of `host`: of the work that it gave to the device itself, or did itself where the host is the device."""
    return trace.own_time if trace.is_host_only else trace.device_time


def compute_time(trace: Trace) -> Ints:
    """Of each row of `host`: of the work that it gave to the device itself, without copies and fills."""
    computing = (trace.owner >= 0) & (trace.device.kind == EventKind.COMPUTE)
    sums = np.bincount(
        trace.owner[computing], weights=trace.device.duration[computing], minlength=len(trace.host)
    )
    return sums.astype(np.int64)


def whole_time(trace: Trace, rows: Ints) -> Ints:
    """The same with everything that rows of `host` called in turn."""
    if trace.is_host_only:
        return trace.host.duration[rows]
    last = end_of_calls(trace, rows)
    before = np.concatenate([[0], np.cumsum(trace.device_time)])
    found: Ints = before[last] - before[rows]
    return found


def end_of_calls(trace: Trace, rows: Ints) -> Ints:
    """The row behind the last one that each row of `host` called: callers come first, what they call follows."""
    host = trace.host
    span = int(host.end.max(initial=0)) + 1
    order = host.thread * span + host.start
    return np.maximum(
        np.searchsorted(order, host.thread[rows] * span + host.end[rows], side="left"), rows + 1
    )


def groups_of(trace: Trace, rows: Ints, time: Ints) -> list[CallGroup]:
    """Rows of `host` with their times, the greatest group first."""
    if not len(rows):
        return []
    name, signature = trace.host.name[rows], trace.host.signature[rows]
    count = len(trace.raw_signatures) + 1
    keys, group = np.unique(name * count + signature + 1, return_inverse=True)
    total = np.bincount(group, weights=time)
    calls = np.bincount(group)
    order = np.argsort(time, kind="stable")
    longest = np.zeros(len(keys), np.int64)
    longest[group[order]] = rows[order]  # the last one stays
    return [
        CallGroup(
            trace.names[int(keys[at] // count)],
            int(keys[at] % count) - 1,
            int(calls[at]),
            int(total[at]),
            int(longest[at]),
        )
        for at in np.argsort(-total, kind="stable").tolist()
    ]


def as_evidence(trace: Trace, group: CallGroup, remark: str = "") -> Evidence:
    """With the place and the time of its longest call."""
    return Evidence(
        group.operator,
        described(trace, group.signature, remark),
        trace.places(np.array([group.longest]))[0],
        group.calls,
        group.time / 1e9,
        trace.share(group.time),
        int(trace.host.start[group.longest]) / 1e9,
    )


def described(trace: Trace, signature: int, remark: str = "") -> str:
    """Shapes, types and a remark."""
    read = trace.signature(signature)
    return "; ".join(filter(None, (read.shapes_text, read.dtypes_text, remark)))


NO_DEVICE_WORK = Text(
    "the device's work: a trace of a device, or a table of its kernels",
    "设备上的任务：设备的跟踪文件，或其内核表（kernel_details.csv）",
)


class FoundKernels(NamedTuple):
    """Work of the device that a detector asked for."""

    calls: int
    share: float  # of the steps' time
    evidence: tuple[Evidence, ...]


def needs_device_work(run: Run) -> Text | None:
    """For detectors that look at kernels."""
    traced = run.trace is not None and not run.trace.is_host_only
    return None if traced or run.kernels is not None else NO_DEVICE_WORK


def needs_work_or_types(run: Run) -> Text | None:
    """For detectors that look at kernels, or at the inputs of operators where the host is the device."""
    traced = run.trace is not None and (run.trace.has_shapes or not run.trace.is_host_only)
    return None if traced or run.kernels is not None else NO_DEVICE_WORK


def names_that(trace: Trace, fits: Callable[[str], object]) -> Flags:
    """For each number of a name whether the device's work of this name fits."""
    found: Flags = np.zeros(len(trace.names), bool)
    numbers = np.unique(trace.device.name)
    found[numbers] = [bool(fits(trace.names[number])) for number in numbers.tolist()]
    return found


def found_in_trace(trace: Trace, rows: Ints) -> FoundKernels:
    """Rows of `device`, those of the window."""
    work = trace.device.take(rows)
    kept = trace.in_window(work)
    work, owner = work.take(kept), trace.owner[rows][kept]
    return FoundKernels(
        len(work),
        trace.share(trace.moments(work).total),
        added_up(trace, _keys(trace, work, owner), work.duration, work.start),
    )


def _keys(trace: Trace, work: Columns, owner: Ints) -> list[LineKey]:
    """By the kernel and the operator that launched it."""
    known = np.unique(owner[owner >= 0])
    places = dict(zip(known.tolist(), trace.places(known), strict=True))
    texts: dict[tuple[int, int], str] = {}
    keys = []
    for name, row in zip(work.name.tolist(), owner.tolist(), strict=True):
        detail = ""
        if row >= 0:
            what = (int(trace.host.name[row]), int(trace.host.signature[row]))
            if what not in texts:
                texts[what] = "; ".join(filter(None, (trace.names[what[0]], described(trace, what[1]))))
            detail = texts[what]
        keys.append(LineKey(trace.names[name], places.get(row, ""), detail))
    return keys


def table_time(table: KernelTable) -> float:
    """Seconds that shares of a table are of: from its first kernel to its last one."""
    start, end = table.span
    return (end - start) / 1e9 if end > start else table.seconds


def found_in_table(table: KernelTable, rows: Flags) -> FoundKernels:
    """Rows of a table of kernels."""
    total = table_time(table)
    groups = table.groups_of(rows)
    seconds = sum(group.seconds for group in groups)
    evidence = tuple(kernel_evidence(group, total) for group in groups[:MOST])
    return FoundKernels(sum(group.calls for group in groups), seconds / total if total else 0.0, evidence)


def kernel_evidence(group: KernelGroup, total: float) -> Evidence:
    """With what the kernel was called."""
    called = group.signature
    inputs = "; ".join(filter(None, (called.input_shapes, called.input_dtypes, called.input_formats)))
    outputs = "; ".join(filter(None, (called.output_shapes, called.output_dtypes, called.output_formats)))
    return Evidence(
        f"{group.name} ({group.type})" if group.type else group.name,
        " → ".join(filter(None, (inputs, outputs))),
        count=group.calls,
        seconds=group.seconds,
        share=group.seconds / total if total else 0.0,
    )
