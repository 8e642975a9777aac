"""The device's work, from a trace or from a table of kernels alone, for detectors that ask for the names of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torchferry.perf.detect.evidence import MOST, LineKey, added_up
from torchferry.perf.detect.groups import described
from torchferry.perf.model import Evidence
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Columns, Flags, Ints

if TYPE_CHECKING:
    from torchferry.perf.tables.kernels import KernelGroup, KernelTable
    from torchferry.traces.model import Trace

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
