"""The pieces of work are too small for the device: most of the time it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.detect.evidence import by_name
from torchferry.perf.detect.memory_limit import memory_of
from torchferry.perf.detect.model import needs_device, trace_detector
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import EventKind
from torchferry.traces.model import Trace

ID = "low_utilisation"
SHORT = 10_000  # nanoseconds: about what a host needs to call an operator
MOST_BUSY = 0.5  # of the steps
LEAST_SHORT = 0.6  # of the kernels
MOST_LOADER_SHARE = 0.10  # more: the data is the reason, not the batch

_TITLE = Text("The device gets too little work at a time", "单次计算量对设备过小")
_SUMMARY = Text(
    "The device computes for {busy:.1%} of the time, and {short:.0%} of its kernels take less than 10 µs.",
    "设备仅 {busy:.1%} 的时间在计算，{short:.0%} 的 kernel 不足 10 µs。",
)
_BATCH = Text(
    "Raise the batch size (apparently {batch} now), and adjust the learning rate.",
    "增大批量（当前约为 {batch}），并相应调整学习率。",
)
_LARGER = Text(
    "Raise the batch size, and adjust the learning rate.",
    "增大批量，并相应调整学习率。",
)
_ROOM = Text(
    "Memory allows it: {used:.0%} of the device's memory is in use.",
    "显存有余量：目前使用了 {used:.0%}。",
)
_BASIS = Text(
    "an estimate: with twice the batch, the same number of calls processes twice the samples, which "
    "halves the idle time per sample",
    "估计值：批量加倍时，同样次数的调用处理两倍样本，每个样本分摊的空闲时间减半",
)
_LAYERS = ("aten::conv2d", "aten::conv1d", "aten::conv3d", "aten::convolution", "aten::linear", "aten::addmm")


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the lengths of kernels."""
    kernels = trace.of_window(trace.device.where(EventKind.COMPUTE))
    if not len(kernels) or trace.share(run.parts[TimePart.LOADER].total) > MOST_LOADER_SHARE:
        return
    busy = trace.share(run.parts[TimePart.COMPUTE].total)
    short = float((kernels.duration < SHORT).mean())
    if busy > MOST_BUSY or short < LEAST_SHORT:
        return
    idle = trace.share(run.parts[TimePart.HOST].total + run.parts[TimePart.OTHER].total)
    batch, (peak, limit) = _batch_size(trace), memory_of(run)
    remedies = [_BATCH.format(batch=batch) if batch else _LARGER]
    if limit and 0 < peak < limit / 2:
        remedies.append(_ROOM.format(used=peak / limit))
    summary, evidence = _SUMMARY.format(busy=busy, short=short), by_name(trace, kernels)
    yield Diagnosis(ID, _TITLE, summary, idle, tuple(remedies), evidence, gain=idle / 2, gain_basis=_BASIS)


def _batch_size(trace: Trace) -> int:
    """The first size of most layers' inputs; 0: not known."""
    rows = operators_in_window(trace)
    rows = rows[np.isin(trace.host.name[rows], trace.name_ids(*_LAYERS))]
    found: Counter[int] = Counter()
    for number, calls in Counter(trace.host.signature[rows].tolist()).items():
        dims = trace.signature(number).dims
        first = next((each for each in dims if isinstance(each, list) and len(each) > 1), None)
        if first and isinstance(first[0], int):
            found[first[0]] += calls
    return found.most_common(1)[0][0] if found else 0


DETECTOR = trace_detector(ID, detect, needs_device)
