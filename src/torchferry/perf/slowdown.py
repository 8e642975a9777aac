"""What the profiler itself adds to the times that it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torchferry.perf.run import Run
from torchferry.perf.trace.columns import Ints
from torchferry.perf.trace.intervals import Intervals

if TYPE_CHECKING:
    from torchferry.perf.trace.model import Trace


class UsualStep(NamedTuple):
    """Seconds of a step in the middle of all."""

    profiled: float
    unprofiled: float


def usual_step(run: Run) -> UsualStep | None:
    """None: how long steps take without the profiler is not known.

    Medians: workers of a loader hand over several batches at a time, so that one step waits for all of them and the
    next ones for nothing.
    """
    unprofiled = run.rank_facts.get("unprofiled_step")
    if not isinstance(unprofiled, float) or unprofiled <= 0 or run.trace is None or not len(run.trace.steps):
        return None
    steps = np.sort(run.trace.steps.end - run.trace.steps.start)
    return UsualStep(int(steps[(len(steps) - 1) // 2]) / 1e9, unprofiled)


def share_without_profiler(run: Run, trace: Trace, moments: Intervals) -> float:
    """Of a step's time, for moments in which the host runs Python: each event there costs the same to write down."""
    usual = usual_step(run)
    if usual is None or usual.profiled <= usual.unprofiled:
        return trace.share(moments.total)
    events = np.concatenate([trace.python.start, trace.host.start])
    added = (1.0 - usual.unprofiled / usual.profiled) * trace.window.total
    inside = _within(events, moments) / max(_within(events, trace.window), 1)
    left = trace.window.total - added
    return min(max(moments.total - added * inside, 0.0) / left, 1.0) if left > 0 else 0.0


def _within(moments: Ints, around: Intervals) -> int:
    if not len(around.start):
        return 0
    row = np.searchsorted(around.start, moments, side="right") - 1
    return int(((row >= 0) & (moments < around.end[np.maximum(row, 0)])).sum())
