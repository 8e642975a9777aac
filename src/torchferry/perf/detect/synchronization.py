"""The program waits for results of the device: `.item()`, `.cpu()`, results of unknown size, explicit waiting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from torchferry.perf.detect.events import is_on_host, per_step
from torchferry.perf.detect.evidence import added_up
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.detect.waits import Waits, waits_for_device
from torchferry.perf.model import Diagnosis, Impact
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import Trace

ID = "synchronization"
LEAST_GAIN = (
    0.01  # of the steps: one wait at the end of a long step costs less, and programs need it for logs
)
LEAST_PER_STEP = 1.0  # where the device's time is not known: what happens in every step, not once for a log
# Each wait empties the device's queue, and some tens of microseconds pass until it is filled again: ten of them are
# a good part of a step of a few milliseconds.
MANY_PER_STEP = 10.0

_TITLE = Text("The program waits for the device", "程序等待设备完成")
_SUMMARY = Text(
    "{count:.1f} times per step the program waits for the device, {waiting:.1%} of the time; "
    "afterwards the device is idle for {idle:.1%}.",
    "程序每步等待设备 {count:.1f} 次，占时间的 {waiting:.1%}；随后设备空闲，占 {idle:.1%}。",
)
_UNTIMED = Text(
    "{count:.1f} times per step the program reads a result and has to wait for the device. This "
    "trace has no device times, so the wait is unknown.",
    "程序每步 {count:.1f} 次读取结果，必须等待设备完成。此 trace 没有设备时间，无法给出等待时长。",
)
_READ = Text(
    "Keep numbers on the device: accumulate them as tensors (`total += loss.detach()`), and read "
    "them with .item() only every few steps.",
    "数值留在设备上：以张量累加（`total += loss.detach()`），隔若干步再用 .item() 读取。",
)
_SIZED = Text(
    "Results whose size depends on values (nonzero, boolean indexing, unique) make the host wait: "
    "use torch.where or a multiplication by the mask.",
    "大小取决于数值的结果（nonzero、布尔索引、unique）会使主机等待：改用 torch.where 或与掩码相乘。",
)
_COPIED = Text(
    "Copy from and to pinned memory with non_blocking=True, and read what comes from the device a step later.",
    "以 non_blocking=True 与锁页内存互相拷贝，来自设备的结果下一步再读取。",
)
_ASKED = Text(
    "Remove synchronize() from the training loop; to measure time, use events.",
    "去掉训练循环中的 synchronize()；计时请用 Event。",
)
_BASIS = Text(
    "the time for which the device is idle right after a wait, up to the length of the wait",
    "等待结束后设备随即空闲的时间，不超过等待本身的时长",
)
_REMEDIES = (
    (re.compile(r"aten::(?:item|_local_scalar_dense|is_nonzero|equal|allclose)$"), _READ),
    (re.compile(r"nonzero$|masked_select|unique|aten::index"), _SIZED),
    (re.compile(r"aten::(?:to|_to_copy|copy_)$|memcpy", re.IGNORECASE), _COPIED),
    (re.compile(r"sync|finish", re.IGNORECASE), _ASKED),
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By what it costs; where no device was traced, by how often."""
    if is_on_host(trace, run.device):
        return
    waits = waits_for_device(run, trace)
    count = per_step(trace, len(waits))
    if trace.is_host_only:
        if count >= LEAST_PER_STEP:
            severity = Impact.HIGH if count >= MANY_PER_STEP else Impact.MEDIUM
            yield replace(_diagnosis(trace, waits, _UNTIMED.format(count=count)), at_least=severity)
        return
    gain = trace.share(waits.idle_after.total)
    if gain < LEAST_GAIN:
        return
    waiting = trace.share((Intervals.union(waits.start, waits.start + waits.time) & trace.window).total)
    summary = _SUMMARY.format(count=count, waiting=waiting, idle=gain)
    yield _diagnosis(trace, waits, summary, waiting, gain)


def _diagnosis(
    trace: Trace, waits: Waits, summary: Text, share: float = 0.0, gain: float | None = None
) -> Diagnosis:
    if len(trace.python):
        places = trace.places_at(waits.thread, waits.start)
    else:  # the stack is written down at operators only
        at_operators = trace.places(np.maximum(waits.row, 0))
        places = [place if row >= 0 else "" for place, row in zip(at_operators, waits.row, strict=True)]
    evidence = added_up(trace, waits.name, places, waits.time, waits.start)
    names = [str(each.what) for each in evidence]
    remedies = [remedy for pattern, remedy in _REMEDIES if any(map(pattern.search, names))] or [_READ]
    basis = None if gain is None else _BASIS
    return Diagnosis(ID, _TITLE, summary, share, tuple(remedies), evidence, gain, basis)


DETECTOR = trace_detector(ID, detect)
