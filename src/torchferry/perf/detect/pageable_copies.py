"""Tensors are copied to the device from memory that is not pinned: the host waits for each copy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.evidence import by_name_and_place, found_in_trace, names_that
from torchferry.perf.detect.model import Detector, needs_trace
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Flags, Ints
from torchferry.traces.model import Trace

ID = "pageable_copies"
LEAST_SHARE = 0.01  # of the steps; pinned copies of a prefetching loader hide behind computation
_PAGEABLE = re.compile(r"HtoD.*Pageable|Pageable\s*->\s*Device")
_BLOCKING = re.compile(r"Memcpy(?:WithStream)?$")  # in every vendor's library: those without Async wait

_TITLE = Text("Copies to the device block", "到设备的拷贝会阻塞")
_PAGEABLE_SUMMARY = Text(
    "{count} copies to the device come from pageable memory; for {share:.1%} of the time of a step the device does "
    "nothing else.",
    "{count} 次到设备的拷贝来自可换页内存；单步时间的 {share:.1%} 内设备只在等待它们。",
)
_BLOCKING_SUMMARY = Text(
    "In {count} copies the host waits until the device is done; they take {share:.1%} of the time of a step.",
    "{count} 次拷贝中主机等待设备完成，占单步时间的 {share:.1%}。",
)
_PIN = Text(
    "Give DataLoader pin_memory=True and copy with tensor.to(device, non_blocking=True).",
    "为 DataLoader 设置 pin_memory=True，并用 tensor.to(device, non_blocking=True) 拷贝。",
)
_PRELOAD = Text(
    "`torchferry.perf.affinity.PreLoader` copies the next batch on a stream of its own while this one is computed.",
    "`torchferry.perf.affinity.PreLoader` 在计算当前批次时用独立的流拷贝下一批。",
)
_BASIS = Text(
    "the time in which nothing but these copies goes on; pinned and prefetched ones hide behind computation",
    "只有这些拷贝在进行的时间；锁页并预取后可被计算掩盖",
)


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the kind of memory that the profiler names, or the call of the device's library."""
    trace = run.trace
    assert trace is not None
    pageable = np.flatnonzero(names_that(trace, _PAGEABLE.search)[trace.device.name])
    alone = trace.moments(trace.device.take(pageable)) & run.parts.get(TimePart.COPY, trace.window)
    share = trace.share(alone.total)
    if len(pageable) and share >= LEAST_SHARE:
        found = found_in_trace(trace, pageable)
        summary = _PAGEABLE_SUMMARY.format(count=found.calls, share=share)
        yield Diagnosis(
            ID, _TITLE, summary, found.share, (_PIN, _PRELOAD), found.evidence, gain=share, gain_basis=_BASIS
        )
    elif not len(pageable):
        yield from _blocking(trace)


def _blocking(trace: Trace) -> Iterator[Diagnosis]:
    """Where the profiler does not name the memory: calls of the library that wait, and are made for a copy."""
    numbers = [
        number for number in np.unique(trace.runtime.name).tolist() if _BLOCKING.search(trace.names[number])
    ]
    calls = trace.runtime.take(np.isin(trace.runtime.name, numbers))
    calls = calls.take(trace.in_window(calls))
    rows = trace.host_calls.enclosing(calls.thread, calls.start)
    copying = _lies_in_copy(trace, rows)
    share = trace.share(trace.moments(calls.take(copying)).total)
    if share < LEAST_SHARE:
        return
    outer = np.unique(rows[copying])
    summary = _BLOCKING_SUMMARY.format(count=int(copying.sum()), share=share)
    yield Diagnosis(ID, _TITLE, summary, share, (_PIN, _PRELOAD), by_name_and_place(trace, outer))


def _lies_in_copy(trace: Trace, rows: Ints) -> Flags:
    """Whether the operator copies a tensor. One that reads a single value is another bottleneck's."""
    copies = np.isin(trace.host.name, trace.name_ids("aten::copy_", "aten::_to_copy", "aten::to"))
    found: Flags = (rows >= 0) & copies[rows]
    return found


DETECTOR = Detector(ID, needs_trace, detect)
