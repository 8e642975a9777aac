"""The allocator asks the device for memory in every step, and gives it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.evidence import by_name
from torchferry.perf.detect.model import Detector, needs_device
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Columns
from torchferry.traces.model import Trace

ID = "allocation"
LEAST_SHARE = 0.01  # of the steps: an allocator that has settled makes no such calls at all
LEAST_PER_STEP = 1.0

_TITLE = Text("Memory is asked for and given back in every step", "每步都在申请和释放显存")
_SUMMARY = Text(
    "{count:.1f} times per step the device's library is asked for memory or given it back, {share:.1%} of the time.",
    "每步向设备运行时申请或归还内存 {count:.1f} 次，占时间的 {share:.1%}。",
)
_REMEDIES = (
    Text(
        "Remove empty_cache() from the training loop.",
        "去掉训练循环中的 empty_cache()。",
    ),
    Text(
        "If sizes change from step to step: pad to a few lengths, or expandable_segments:True in the allocator's "
        "configuration. If memory is short: a smaller batch, mixed precision, checkpointing.",
        "若形状逐步变化：填充到少数几种长度，或在分配器配置中设置 expandable_segments:True。若显存不足：减小批量、混合精度、重计算。",
    ),
)
_PINNED = Text(
    "Host memory is pinned in the loop: pin it once (pin_memory=True of DataLoader) and use it again.",
    "循环中锁定主机内存：一次锁定（DataLoader 的 pin_memory=True）并重复使用。",
)
_BASIS = Text("the time of these calls", "这些调用的时间")
_CALL = re.compile(
    r"(?:^|@)[a-z]+(?:Malloc|MemAlloc|MemCreate|MemMap|HostAlloc|Free|MemRelease|MemUnmap)", re.ASCII
)
_PINNING = re.compile(r"Host", re.ASCII)


def detect(run: Run) -> Iterator[Diagnosis]:
    """The first step may ask for what the others use."""
    trace = run.trace
    assert trace is not None
    calls = _calls(trace)
    steps = max(len(trace.steps) - 1, 1)
    share = trace.share(trace.moments(calls).total)
    if share < LEAST_SHARE or len(calls) < LEAST_PER_STEP * steps:
        return
    names = {trace.names[number] for number in calls.name.tolist()}
    pinned = (_PINNED,) if any(_PINNING.search(name) for name in names) else ()
    yield Diagnosis(
        ID,
        _TITLE,
        _SUMMARY.format(count=len(calls) / steps, share=share),
        share,
        (*pinned, *_REMEDIES),
        by_name(trace, calls),
        gain=share,
        gain_basis=_BASIS,
    )


def _calls(trace: Trace) -> Columns:
    numbers = [number for number, name in enumerate(trace.names) if _CALL.search(name)]
    calls = trace.runtime.take(np.isin(trace.runtime.name, numbers))
    calls = calls.take(trace.in_window(calls))
    return calls.take(calls.start >= trace.steps.end[0]) if len(trace.steps) > 1 else calls


DETECTOR = Detector(ID, needs_device, detect)
