"""What a detector is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

Lacks = Callable[[Run], Text | None]


class Detector(NamedTuple):
    """Looks for one kind of bottleneck."""

    id: str
    lacks: Lacks  # what the run does not hold and the detector needs; None: it can look
    detect: Callable[[Run], Iterable[Diagnosis]]


NO_TRACE = Text("a trace", "trace（trace）")
NO_FRAMES = Text("Python stacks (with_stack=True)", "Python 调用栈（with_stack=True）")
NO_DEVICE = Text("device times: the trace shows only the host", "设备的时间：此 trace 只有主机")
NO_SHAPES = Text("shapes of operators (record_shapes=True)", "算子的形状（record_shapes=True）")
NO_STRIDES = Text(
    "strides of inputs (record_shapes=True on torch 2.2 or later)",
    "输入的步长（torch 2.2 及以上的 record_shapes=True）",
)


def needs_trace(run: Run) -> Text | None:
    """What a detector that looks at the trace lacks."""
    return NO_TRACE if run.trace is None else None


def needs_device(run: Run) -> Text | None:
    """What a detector that looks at the device's times lacks."""
    return needs_trace(run) or (NO_DEVICE if run.trace is not None and run.trace.is_host_only else None)


def trace_detector(
    name: str,
    detect: Callable[[Run, Trace], Iterable[Diagnosis]],
    lacks: Lacks = needs_trace,
) -> Detector:
    """A detector that needs a run's trace, whatever else it needs."""

    @functools.wraps(detect)
    def of_run(run: Run) -> Iterable[Diagnosis]:
        assert run.trace is not None
        return detect(run, run.trace)

    return Detector(name, lacks, of_run)
