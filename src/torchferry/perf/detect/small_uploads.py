"""Many small copies to the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import per_step
from torchferry.perf.detect.evidence import by_name, by_name_and_place
from torchferry.perf.detect.model import needs_device, trace_detector
from torchferry.perf.detect.waits import upload_rows
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace
from torchferry.units import size

ID = "small_uploads"
SMALL = 65_536  # bytes: the link takes longer to begin than to carry them
LEAST_PER_STEP = 10  # inputs, targets and masks are a few
LEAST_SHARE = 0.01  # of the steps, of the host's time in them

_TITLE = Text("Many small copies to the device", "大量向设备的小拷贝")
_SUMMARY = Text(
    "{count:.0f} copies per step move {size} each to the device; the calls take {share:.1%} of the time.",
    "每步有 {count:.0f} 次拷贝，平均每次 {size}；这些调用占时间的 {share:.1%}。",
)
_REMEDIES = (
    Text(
        "Create tensors directly on the device (device=...), and once before the loop if they do not change.",
        "在使用处直接在设备上创建张量（device=...）；若不变化，在循环外创建一次。",
    ),
    Text(
        "Combine the fields of a sample into one tensor in the collate function, and copy that one.",
        "在 collate 函数中把一个样本的各字段合成一个张量，只拷贝一次。",
    ),
)
_BASIS = Text(
    "the host's time in these calls; a single combined copy takes a fraction of it",
    "主机在这些调用中的时间；合并后只需其中一部分",
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the device's copies and their sizes."""
    copies = upload_rows(trace)
    device = trace.device.take(copies)
    copies = copies[trace.in_window(device) & (device.nbytes > 0) & (device.nbytes < SMALL)]
    count = per_step(trace, len(copies))
    if count < LEAST_PER_STEP:
        return
    owners = np.unique(trace.owner[copies])
    calls = trace.host_calls.outermost(owners[owners >= 0])
    share = trace.share_of(trace.host.take(calls))
    if share < LEAST_SHARE:
        return
    mean = float(trace.device.nbytes[copies].mean())
    summary = _SUMMARY.format(count=count, size=size(mean), share=share)
    evidence = by_name_and_place(trace, calls) or by_name(trace, trace.device.take(copies))
    yield Diagnosis(ID, _TITLE, summary, share, _REMEDIES, evidence, gain=share, gain_basis=_BASIS)


DETECTOR = trace_detector(ID, detect, needs_device)
