"""Some steps take far longer than the others: they do something that the others do not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.evidence import MOST
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Flags, Ints
from torchferry.traces.model import Trace
from torchferry.traces.names import is_profiler_step

ID = "uneven_steps"
LEAST_STEPS = 4
LEAST_SLOW = 2  # besides the first step, which may still be warming up
SLOW = 2.0  # times the usual step; noise of a busy machine stays below that
LEAST_SHARE = 0.10  # of the time, beyond the usual step
_MUCH = 0.5  # of what slow steps take more, to be named

_TITLE = Text("Some steps take far longer than the others", "部分步明显更慢")
_SUMMARY = Text(
    "{slow} of {count} steps take {least:.0f} to {most:.0f} ms, the typical step {usual:.0f} ms: "
    "{share:.1%} of the time is spent on work that only those steps do.",
    "{count} 步中有 {slow} 步用时 {least:.0f} 至 {most:.0f} ms，通常为 {usual:.0f} ms：{share:.1%} "
    "的时间用于只在这些步中做的事。",
)
_SELDOM = Text(
    "Run validation, logging and checkpoints in the loop less often, or on fewer samples. Other "
    "findings are shares of all these steps together: to judge the training step itself, profile a "
    "stretch without them.",
    "循环中的验证、日志与 checkpoint：降低频率，或减少样本。其他发现的占比按全部这些步计算："
    "若要评判训练步本身，请采集不含它们的一段。",
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the times of steps; what is longer in the slow ones says why."""
    steps = trace.steps
    if len(steps) < LEAST_STEPS:
        return
    times = steps.end - steps.start
    usual = float(np.sort(times)[(len(times) - 1) // 4])  # so that every second step may be slow
    slow: Flags = times > SLOW * usual
    slow[0] = False
    more = float((times[slow] - usual).sum())
    share = more / float(times.sum()) if usual else 0.0
    if slow.sum() < LEAST_SLOW or share < LEAST_SHARE:
        return
    summary = _SUMMARY.format(
        slow=int(slow.sum()),
        count=len(times),
        least=times[slow].min() / 1e6,
        most=times[slow].max() / 1e6,
        usual=usual / 1e6,
        share=share,
    )
    yield Diagnosis(ID, _TITLE, summary, share, (_SELDOM,), tuple(_longer(trace, slow, more)))


def _longer(trace: Trace, slow: Flags, more: float) -> Iterator[Evidence]:
    """The functions, or else marks and operators, that take longer in the slow steps: the innermost that explain much."""
    events = trace.python if len(trace.python) else trace.host
    # For each event the position of the step that it begins in; -1: none.
    step: Ints = np.searchsorted(trace.steps.start, events.start, side="right") - 1
    step = np.where((step >= 0) & (events.start < trace.steps.end[np.maximum(step, 0)]), step, -1)
    usual = ~slow
    usual[0] = False
    # Nanoseconds of each name in the slow steps, and in the others.
    in_slow, in_usual = (
        np.bincount(
            events.name,
            weights=events.duration * ((step >= 0) & chosen[np.maximum(step, 0)]),
            minlength=len(trace.names),
        )
        for chosen in (slow, usual)
    )
    excess = in_slow - in_usual * (slow.sum() / max(int(usual.sum()), 1))
    much = np.flatnonzero(excess >= _MUCH * more).tolist()
    named = [number for number in much if not is_profiler_step(trace.names[number])]
    for number in sorted(named, key=lambda each: in_slow[each])[:MOST]:
        rows = np.flatnonzero((events.name == number) & (step >= 0) & slow[np.maximum(step, 0)])
        longest = rows[int(events.duration[rows].argmax())]
        yield Evidence(
            trace.names[number],
            place=trace.places_at(events.thread[[longest]], events.start[[longest]])[0],
            count=len(rows),
            seconds=float(excess[number]) / 1e9,
            share=min(trace.share(float(excess[number])), 1.0),
            example=int(events.start[longest]) / 1e9,
        )


DETECTOR = trace_detector(ID, detect)
