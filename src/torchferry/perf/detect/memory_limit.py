"""The device's memory is nearly full."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.evidence import MOST
from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import DeviceMemoryEvents, Trace
from torchferry.traces.names import operator_of
from torchferry.units import size

ID = "memory_limit"
LEAST_USED = 0.90  # of the device's memory, in tensors: a longer batch, or fragments, may be too much
_PEAK = Text("the peak", "峰值")

_TITLE = Text("The device's memory is nearly full", "设备显存接近上限")
_SUMMARY = Text(
    "Tensors take up to {peak} of {limit} ({used:.0%}): a slightly larger batch fails, and even "
    "before that the allocator frees and reallocates.",
    "张量最多占用 {limit} 中的 {peak}（{used:.0%}）：批量稍大即会报错，在此之前分配器会反复释放与申请。",
)
_REMEDIES = (
    Text(
        "Use mixed precision, torch.utils.checkpoint for the largest blocks, or a smaller batch with "
        "gradient accumulation.",
        "使用混合精度，对最大的模块使用 torch.utils.checkpoint，或减小批量并累积梯度。",
    ),
    Text(
        "Use zero_grad(set_to_none=True), store no losses with their graphs (loss.detach()), and "
        "evaluate under torch.no_grad().",
        "zero_grad(set_to_none=True)；不要保存仍带计算图的损失（用 loss.detach()）；评估时使用 "
        "torch.no_grad()。",
    ),
)
NO_MEMORY = Text(
    "memory events (profile_memory=True) and the device's memory size",
    "显存事件（profile_memory=True）与设备显存大小",
)


def memory_of(run: Run) -> tuple[int, int]:
    """Bytes that tensors took at most, and bytes of the device's memory, from whatever tells it; 0: not known."""
    told = run.rank_facts.get("memory_peak")
    peaks = [told if isinstance(told, int) else 0, run.memory.peak if run.memory is not None else 0]
    fullest = _fullest(run.trace)
    if fullest is not None:
        peaks.append(int(fullest.allocated.max()))
    return max(peaks), run.memory_limit


def lacks(run: Run) -> Text | None:
    """Both figures must be known."""
    return None if all(memory_of(run)) else NO_MEMORY


def detect(run: Run) -> Iterator[Diagnosis]:
    """It takes no time by itself: its share is 0."""
    peak, limit = memory_of(run)
    used = peak / limit
    if used >= LEAST_USED:
        summary = _SUMMARY.format(peak=size(peak), limit=size(limit), used=used)
        yield Diagnosis(ID, _TITLE, summary, 0.0, _REMEDIES, _evidence(run))


def _evidence(run: Run) -> tuple[Evidence, ...]:
    if run.memory is not None and (held := run.memory.at_peak()):
        return tuple(Evidence(use.operator, size(use.total), count=use.calls) for use in held[:MOST])
    trace, fullest = run.trace, _fullest(run.trace)
    if trace is None or fullest is None:
        return ()
    at = int(fullest.allocated.argmax())
    moment = int(fullest.start[at])
    detail = size(int(fullest.allocated[at]))
    row = _operator_at(trace, moment)
    if row < 0:
        return (Evidence(_PEAK, detail, example=moment / 1e9),)
    place = trace.places(np.array([row]))[0]
    return (Evidence(trace.names[int(trace.host.name[row])], detail, place, 1, example=moment / 1e9),)


def _operator_at(trace: Trace, moment: int) -> int:
    """The outermost operator that was at work on any thread; -1: none."""
    threads = np.unique(trace.host.thread)
    for row in trace.host_calls.enclosing(threads, np.full(len(threads), moment)).tolist():
        found = -1
        while row >= 0:
            if operator_of(trace.names[int(trace.host.name[row])]):
                found = row
            row = int(trace.parent[row])
        if found >= 0:
            return found
    return -1


def _fullest(trace: Trace | None) -> DeviceMemoryEvents | None:
    curves = [curve for device, curve in trace.memory.items() if device != "cpu"] if trace else []
    return max(curves, key=lambda curve: int(curve.allocated.max()), default=None)


DETECTOR = Detector(ID, lacks, detect)
