"""The allocator asks the device for memory in every step, and gives it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.perf.detect.events import events_like
from torchferry.perf.detect.evidence import by_name, names_of
from torchferry.perf.detect.model import needs_device, trace_detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "allocation"
LEAST_SHARE = 0.01  # of the steps: an allocator that has settled makes no such calls at all
LEAST_PER_STEP = 1.0

_TITLE = Text("Memory is allocated and freed in every step", "每步都在申请和释放显存")
_SUMMARY = Text(
    "{count:.1f} times per step memory is requested from the device's runtime or returned to it, "
    "{share:.1%} of the time.",
    "每步向设备运行时申请或归还内存 {count:.1f} 次，占时间的 {share:.1%}。",
)
_REMEDIES = (
    Text(
        "Remove empty_cache() from the training loop.",
        "去掉训练循环中的 empty_cache()。",
    ),
    Text(
        "If sizes change from step to step, pad to a few lengths, or set expandable_segments:True in the "
        "allocator's configuration. If memory is short, use a smaller batch, mixed precision or "
        "checkpointing.",
        "若形状逐步变化，请填充到少数几种长度，或在分配器配置中设置 expandable_segments:True。"
        "若显存不足，请减小批量，或使用混合精度、重计算。",
    ),
)
_PINNED = Text(
    "Host memory is pinned in the loop: pin it once (pin_memory=True of DataLoader) and reuse it.",
    "循环中锁定主机内存：一次锁定（DataLoader 的 pin_memory=True）并重复使用。",
)
_BASIS = Text("the time of these calls", "这些调用的时间")
_CALL = re.compile(
    r"(?:^|@)[a-z]+(?:Malloc|MemAlloc|MemCreate|MemMap|HostAlloc|Free|MemRelease|MemUnmap)", re.ASCII
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By calls of the device's library; the first step may ask for what the others use."""
    calls = events_like(trace, trace.runtime, _CALL)
    if len(trace.steps) > 1:
        calls = calls.take(calls.start >= trace.steps.end[0])
    steps = max(len(trace.steps) - 1, 1)
    share = trace.share_of(calls)
    if share < LEAST_SHARE or len(calls) < LEAST_PER_STEP * steps:
        return
    summary = _SUMMARY.format(count=len(calls) / steps, share=share)
    pins = any("Host" in name for name in names_of(trace, calls.name))
    remedies = (_PINNED, *_REMEDIES) if pins else _REMEDIES
    evidence = by_name(trace, calls)
    yield Diagnosis(ID, _TITLE, summary, share, remedies, evidence, gain=share, gain_basis=_BASIS)


DETECTOR = trace_detector(ID, detect, needs_device)
