"""Tensors are copied to the device from memory that is not pinned: the host waits for each copy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import events_like
from torchferry.perf.detect.evidence import by_name_and_place, found_in_trace
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "pageable_copies"
LEAST_SHARE = 0.01  # of the steps; pinned copies of a prefetching loader hide behind computation
_PAGEABLE = re.compile(r"HtoD.*Pageable|Pageable\s*->\s*Device")
_BLOCKING = re.compile(r"Memcpy(?:WithStream)?$")  # in every vendor's library: those without Async wait

_TITLE = Text("Copies to the device block", "到设备的拷贝会阻塞")
_PAGEABLE_SUMMARY = Text(
    "{count} copies to the device come from pageable memory; for {share:.1%} of the time of a step "
    "the device only waits for them.",
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
    "`torchferry.perf.affinity.PreLoader` copies the next batch on a separate stream while the "
    "current one is computed.",
    "`torchferry.perf.affinity.PreLoader` 在计算当前批次时用独立的流拷贝下一批。",
)
_BASIS = Text(
    "the time of copies that nothing overlaps; pinned and prefetched copies hide behind computation",
    "只有这些拷贝在进行的时间；锁页并预取后可被计算掩盖",
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the kind of memory that the profiler names, or the call of the device's library."""
    pageable = np.flatnonzero(np.isin(trace.device.name, trace.names_like(_PAGEABLE)))
    alone = trace.moments(trace.device.take(pageable)) & run.parts.get(TimePart.COPY, trace.window)
    share = trace.share(alone.total)
    if len(pageable) and share >= LEAST_SHARE:
        count, taken, evidence = found_in_trace(trace, pageable)
        summary = _PAGEABLE_SUMMARY.format(count=count, share=share)
        yield Diagnosis(ID, _TITLE, summary, taken, (_PIN, _PRELOAD), evidence, gain=share, gain_basis=_BASIS)
    elif not len(pageable):
        yield from _blocking(trace)


def _blocking(trace: Trace) -> Iterator[Diagnosis]:
    """Where the profiler does not name the memory: calls of the library that wait, and are made for a copy."""
    calls = events_like(trace, trace.runtime, _BLOCKING)
    rows = trace.host_calls.enclosing(calls.thread, calls.start)
    # An operator that reads a single value is another bottleneck's.
    copies = np.isin(trace.host.name, trace.name_ids("aten::copy_", "aten::_to_copy", "aten::to"))
    copying = (rows >= 0) & copies[rows]
    share = trace.share_of(calls.take(copying))
    if share >= LEAST_SHARE:
        summary = _BLOCKING_SUMMARY.format(count=int(copying.sum()), share=share)
        evidence = by_name_and_place(trace, np.unique(rows[copying]))
        yield Diagnosis(ID, _TITLE, summary, share, (_PIN, _PRELOAD), evidence)


DETECTOR = trace_detector(ID, detect)
