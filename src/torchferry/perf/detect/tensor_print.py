"""The program prints tensors: each number of them is fetched from the device by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.perf.detect.events import frames_like, is_on_host, per_step
from torchferry.perf.detect.evidence import by_frame
from torchferry.perf.detect.model import NO_FRAMES, needs_trace, trace_detector
from torchferry.perf.detect.waits import PRINTING
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "tensor_print"
LEAST_SHARE = 0.01  # of the steps
_PRINTING = re.compile(re.escape(PRINTING))
LEAST_PER_STEP = 1.0  # where the device's time is not known

_TITLE = Text("Tensors are printed in the training loop", "训练循环中打印张量")
_SUMMARY = Text(
    "{count:.1f} times per step a tensor is turned into text, {share:.1%} of the time.",
    "每步 {count:.1f} 次把张量转换为文本，占时间的 {share:.1%}。",
)
_REMEDY = Text(
    "Print only every few steps, and print `tensor.tolist()` or .item() instead of the tensor: one "
    "copy instead of one per number.",
    "隔若干步再打印，并打印 `tensor.tolist()` 或 .item() 而非张量本身：只拷贝一次，而不是每个数一次。",
)
_PRINT = Text("print(tensor)", "打印张量")
_BASIS = Text("the time spent printing", "打印所用的时间")


def lacks(run: Run) -> Text | None:
    """Only Python's frames show it."""
    return needs_trace(run) or (None if run.trace and len(run.trace.python) else NO_FRAMES)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the functions of PyTorch that do it."""
    prints = frames_like(trace, _PRINTING)
    share = trace.share_of(prints)
    count = per_step(trace, len(prints))
    untimed = trace.is_host_only and not is_on_host(trace, run.device)
    if not len(prints) or (share < LEAST_SHARE and not (untimed and count >= LEAST_PER_STEP)):
        return
    summary, evidence = _SUMMARY.format(count=count, share=share), by_frame(trace, prints, _PRINT)
    yield Diagnosis(ID, _TITLE, summary, share, (_REMEDY,), evidence, gain=share, gain_basis=_BASIS)


DETECTOR = trace_detector(ID, detect, lacks)
