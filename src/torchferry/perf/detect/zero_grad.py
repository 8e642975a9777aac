"""Gradients are filled with zeros instead of being dropped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import marks, per_step
from torchferry.perf.detect.evidence import LineKey, added_up
from torchferry.perf.detect.model import Detector, needs_trace
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text

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
    "zero_grad(set_to_none=True), the default from torch 2.0 on: the backward pass then writes the gradients.",
    "使用 zero_grad(set_to_none=True)（torch 2.0 起为默认）：反向过程直接写入梯度。",
)
_BASIS = Text("the time of filling", "清零所用的时间")
_FILLS = ("aten::zero_", "aten::_foreach_zero_", "aten::fill_")


def detect(run: Run) -> Iterator[Diagnosis]:
    """By what lies right in the marks of zero_grad."""
    trace = run.trace
    assert trace is not None
    above = trace.parent
    in_mark = (above >= 0) & np.isin(trace.host.name[above], trace.name_ids(prefix=MARK))
    fills = np.isin(trace.host.name, trace.name_ids(*_FILLS))
    rows = np.flatnonzero(in_mark & fills & trace.in_window(trace.host))
    if not len(rows):
        return
    calls = marks(trace, MARK)
    share = trace.share(trace.moments(calls).total)
    gain = share
    if not trace.is_host_only:
        waiting = int(run.parts[TimePart.HOST].covered(calls.start, calls.end).sum())
        gain = trace.share(waiting + float(trace.device_time[rows].sum()))
    if gain < LEAST_SHARE:
        return
    place = trace.places(rows[:1])[0]
    keys = [LineKey(trace.names[number], place) for number in trace.host.name[rows].tolist()]
    yield Diagnosis(
        ID,
        _TITLE,
        _SUMMARY.format(calls=per_step(trace, len(rows)), share=share),
        share,
        (_REMEDY,),
        added_up(trace, keys, trace.host.duration[rows], trace.host.start[rows]),
        gain,
        _BASIS,
    )


DETECTOR = Detector(ID, needs_trace, detect)
