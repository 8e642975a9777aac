"""Evidence: the host's calls and the device's work, added up by name, place, shapes and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torchferry.perf.model import Evidence
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import KernelGroup, KernelTable
from torchferry.text import Text
from torchferry.traces.columns import Columns, EventKind, Flags, Interned, Ints
from torchferry.traces.model import Trace

MOST = 6  # that a diagnosis shows


def added_up(
    trace: Trace,
    what: Sequence[str | Text],
    places: Sequence[str],
    time: Ints,
    start: Ints,
    details: Sequence[str | Text] = (),
    most: int = MOST,
) -> tuple[Evidence, ...]:
    """One for each thing with its place and details, the longest first: how often, how long, where the longest of them is."""
    if not what:
        return ()
    known = Interned()
    keys = zip(what, details or [""] * len(what), places, strict=True)
    group = np.array([known[key] for key in keys], np.int64)
    seconds = np.bincount(group, weights=time)
    counts = np.bincount(group)
    longest = np.zeros(len(known), np.int64)
    order = np.argsort(time, kind="stable")
    longest[group[order]] = order  # the last one stays
    lines = list(known)
    shown = [(at, lines[at]) for at in np.lexsort((-counts, -seconds))[:most].tolist()]
    return tuple(
        Evidence(
            thing,
            detail,
            place,
            int(counts[at]),
            float(seconds[at]) / 1e9,
            min(trace.share(float(seconds[at])), 1.0),  # several threads may be at it together
            int(start[longest[at]]) / 1e9,
        )
        for at, (thing, detail, place) in shown
    )


def names_of(trace: Trace, numbers: Ints) -> list[str]:
    """The names that numbers stand for."""
    return [trace.names[number] for number in numbers.tolist()]


def by_name_and_place(trace: Trace, rows: Ints) -> tuple[Evidence, ...]:
    """Rows of `host`, by their names and the lines that called."""
    host = trace.host.take(rows)
    return added_up(trace, names_of(trace, host.name), trace.places(rows), host.duration, host.start)


def by_name(trace: Trace, events: Columns) -> tuple[Evidence, ...]:
    """Any events, by their names."""
    names = names_of(trace, events.name)
    return added_up(trace, names, [""] * len(names), events.duration, events.start)


def by_frame(trace: Trace, events: Columns, what: str | Text = "") -> tuple[Evidence, ...]:
    """Any events, by the lines that Python was at, and by their names unless all are called the same."""
    names = [what] * len(events) if what else names_of(trace, events.name)
    return added_up(trace, names, trace.places_at(events.thread, events.start), events.duration, events.start)


class CallGroup(NamedTuple):
    """Calls of one operator with one signature."""

    operator: str
    signature: int
    calls: int
    time: int  # nanoseconds of all calls together
    longest: int  # the row of one of them


def work_time(trace: Trace) -> Ints:
    """For each row of `host` the time of the work that it gave to the device, or did itself where the host is the device."""
    return trace.own_time if trace.is_host_only else trace.device_time


def compute_time(trace: Trace) -> Ints:
    """For each row of `host` the time of the work that it gave to the device itself, without copies and fills."""
    computing = (trace.owner >= 0) & (trace.device.kind == EventKind.COMPUTE)
    sums = np.bincount(
        trace.owner[computing], weights=trace.device.duration[computing], minlength=len(trace.host)
    )
    return sums.astype(np.int64)


def whole_time(trace: Trace, rows: Ints) -> Ints:
    """For rows of `host` the time of their work with that of everything that they called in turn."""
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


def as_evidence(trace: Trace, group: CallGroup) -> Evidence:
    """The group, with the place and the time of its longest call."""
    return Evidence(
        group.operator,
        described(trace, group.signature),
        trace.places(np.array([group.longest]))[0],
        group.calls,
        group.time / 1e9,
        trace.share(group.time),
        int(trace.host.start[group.longest]) / 1e9,
    )


def described(trace: Trace, signature: int) -> str:
    """The shapes and types of a signature."""
    read = trace.signature(signature)
    return "; ".join(filter(None, (read.shapes_text, read.dtypes_text)))


def all_described(trace: Trace, signatures: Ints) -> list[str]:
    """The shapes and types of several."""
    known = {number: described(trace, number) for number in np.unique(signatures).tolist()}
    return [known[number] for number in signatures.tolist()]


NO_DEVICE_WORK = Text(
    "device activity: a trace of a device, or a table of its kernels",
    "设备活动：设备的 trace，或其 kernel 表（kernel_details.csv）",
)


class FoundKernels(NamedTuple):
    """Work of the device that a detector asked for."""

    calls: int
    share: float  # of the steps' time
    evidence: tuple[Evidence, ...]


def needs_device_work(run: Run) -> Text | None:
    """What a detector that looks at kernels lacks."""
    traced = run.trace is not None and not run.trace.is_host_only
    return None if traced or run.kernels is not None else NO_DEVICE_WORK


def needs_work_or_types(run: Run) -> Text | None:
    """What a detector lacks that looks at kernels, or at the inputs of operators where the host is the device."""
    traced = run.trace is not None and (run.trace.has_shapes or not run.trace.is_host_only)
    return None if traced or run.kernels is not None else NO_DEVICE_WORK


def found_in_trace(trace: Trace, rows: Ints) -> FoundKernels:
    """Rows of `device`, those of the window: by the kernel, and the operator that launched it."""
    rows = rows[trace.in_window(trace.device.take(rows))]
    work, owner = trace.device.take(rows), trace.owner[rows]
    known = np.unique(owner[owner >= 0])
    places = dict(zip(known.tolist(), trace.places(known), strict=True))
    inputs = all_described(trace, trace.host.signature[known])
    called = zip(known.tolist(), names_of(trace, trace.host.name[known]), inputs, strict=True)
    launchers = {row: "; ".join(filter(None, texts)) for row, *texts in called}
    evidence = added_up(
        trace,
        names_of(trace, work.name),
        [places.get(row, "") for row in owner.tolist()],
        work.duration,
        work.start,
        [launchers.get(row, "") for row in owner.tolist()],
    )
    return FoundKernels(len(work), trace.share_of(work), evidence)


def found_in_table(table: KernelTable, rows: Flags) -> FoundKernels:
    """Rows of a table of kernels."""
    groups = table.groups_of(rows)
    share = table.share(sum(group.seconds for group in groups))
    evidence = tuple(kernel_evidence(table, group) for group in groups[:MOST])
    return FoundKernels(sum(group.calls for group in groups), share, evidence)


def kernel_evidence(table: KernelTable, group: KernelGroup) -> Evidence:
    """Kernels of a table, with what they were called with."""
    called = group.signature
    inputs = "; ".join(filter(None, (called.input_shapes, called.input_dtypes, called.input_formats)))
    outputs = "; ".join(filter(None, (called.output_shapes, called.output_dtypes, called.output_formats)))
    return Evidence(
        f"{group.name} ({group.type})" if group.type else group.name,
        " → ".join(filter(None, (inputs, outputs))),
        count=group.calls,
        seconds=group.seconds,
        share=table.share(group.seconds),
    )
