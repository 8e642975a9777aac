"""Gradients are filled with zeros instead of being dropped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import marks, per_step
from torchferry.perf.detect.evidence import added_up, names_of
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "zero_grad"
MARK = "Optimizer.zero_grad#"
LEAST_SHARE = 0.01  # of the steps; dropping gradients takes next to nothing

_TITLE = Text("Gradients are filled with zeros", "梯度被逐个清零")
_SUMMARY = Text(
    "zero_grad() fills gradients with zeros in {calls:.0f} calls per step, {share:.1%} of the time, and the backward "
    "pass then adds to them.",
    "zero_grad() 每步以 {calls:.0f} 次调用把梯度清零，占时间的 {share:.1%}，反向时还要再累加一次。",
)
_REMEDY = Text(
    "Use zero_grad(set_to_none=True), the default since torch 2.0: the backward pass then writes the "
    "gradients directly.",
    "使用 zero_grad(set_to_none=True)（torch 2.0 起为默认）：反向过程直接写入梯度。",
)
_BASIS = Text("the time spent filling", "清零所用的时间")
_FILLS = ("aten::zero_", "aten::_foreach_zero_", "aten::fill_")


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By what lies right in the marks of zero_grad."""
    above = trace.parent
    in_mark = (above >= 0) & np.isin(trace.host.name[above], trace.name_ids(prefix=MARK))
    fills = np.isin(trace.host.name, trace.name_ids(*_FILLS))
    rows = np.flatnonzero(in_mark & fills & trace.in_window(trace.host))
    if not len(rows):
        return
    calls = marks(trace, MARK)
    share = trace.share_of(calls)
    gain = share
    if not trace.is_host_only:
        waiting = int(run.parts[TimePart.HOST].covered(calls.start, calls.end).sum())
        gain = trace.share(waiting + float(trace.device_time[rows].sum()))
    if gain < LEAST_SHARE:
        return
    summary = _SUMMARY.format(calls=per_step(trace, len(rows)), share=share)
    filled, places = trace.host.take(rows), trace.places(rows[:1]) * len(rows)
    evidence = added_up(trace, names_of(trace, filled.name), places, filled.duration, filled.start)
    yield Diagnosis(ID, _TITLE, summary, share, (_REMEDY,), evidence, gain, _BASIS)


DETECTOR = trace_detector(ID, detect)
