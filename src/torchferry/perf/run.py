"""Everything that was collected of one run (one process of it), as detectors see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from torchferry.perf.model import TimePart
from torchferry.perf.oplog.model import OpLog
from torchferry.perf.tables.kernels import KernelTable
from torchferry.perf.tables.memory import MemoryTable
from torchferry.perf.tables.operators import OperatorTable, StepTable
from torchferry.text import Text
from torchferry.traces.columns import Columns, EventKind
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import Trace
from torchferry.vendors.model import Vendor

# What the device does, by the kinds of its work.
DEVICE_PARTS = {
    TimePart.COMPUTE: (EventKind.COMPUTE,),
    TimePart.COMMUNICATION: (EventKind.COMMUNICATION,),
    TimePart.COPY: (EventKind.COPY,),
    TimePart.MOVE: (EventKind.MOVE, EventKind.FILL),
}
LOADER_MARK = "enumerate(DataLoader)"
HOST_BACKENDS = ("gloo:", "mpi:")  # of torch.distributed: how the marks around their work begin


@dataclass
class Run:
    """At least one of trace, kernels, memory, oplog, operators and step_table is there."""

    sources: tuple[str, ...]
    trace: Trace | None = None
    kernels: KernelTable | None = None  # kernel_details.csv
    memory: MemoryTable | None = None  # operator_memory.csv
    oplog: OpLog | None = None
    operators: OperatorTable | None = None  # torch's printed table, operator_details.csv, op_statistic.csv
    step_table: StepTable | None = None  # step_trace_time.csv
    profile: dict[str, Any] = field(default_factory=dict)  # run.json of `ferry profile`
    rank_facts: dict[str, Any] = field(default_factory=dict)  # this process's part of it
    vendor: Vendor | None = None
    notes: list[Text] = field(default_factory=list)

    @property
    def device(self) -> str:
        """The type of the device: npu, cuda, ..., cpu; "": not known."""
        named = self.profile.get("device")
        if isinstance(named, str) and named:
            return named
        if self.trace is not None:
            return self.trace.device_type
        return self.vendor.device_type if self.vendor else ""

    @property
    def device_name(self) -> str:
        """What its vendor calls the device; "": not known."""
        return str(self.profile.get("device_name") or (self.trace.device_name if self.trace else ""))

    @property
    def torch(self) -> str:
        """The version of PyTorch; "": not known."""
        return str(self.profile.get("torch") or (self.trace.torch if self.trace else ""))

    @property
    def rank(self) -> int | None:
        """The number of the process; None: it is not said."""
        rank = self.rank_facts.get("rank", self.trace.rank if self.trace else None)
        return rank if isinstance(rank, int) else None

    @property
    def memory_limit(self) -> int:
        """Bytes of the device's memory; 0: not known."""
        limit = self.rank_facts.get("memory_limit")
        known = limit if isinstance(limit, int) and limit > 0 else 0
        return known or (self.trace.memory_limit if self.trace else 0)

    @cached_property
    def parts(self) -> dict[TimePart, Intervals]:
        """What the time of the trace's window went to; each moment once."""
        return _parts(self.trace) if self.trace is not None else {}


def loader_waits(trace: Trace) -> Columns:
    """The marks around the program's waiting for the next batch."""
    return trace.host.take(trace.host_rows(prefix=LOADER_MARK))


def communication_calls(trace: Trace) -> Columns:
    """Work of the device, or, where the host computes, what the backend's threads do."""
    if not trace.is_host_only:
        return trace.device.where(EventKind.COMMUNICATION)
    return trace.host.take(np.concatenate([trace.host_rows(prefix=backend) for backend in HOST_BACKENDS]))


def _parts(trace: Trace) -> dict[TimePart, Intervals]:
    loader = trace.moments(loader_waits(trace))
    operators = trace.moments(trace.host.where(EventKind.OPERATOR))
    if trace.is_host_only:
        communication = trace.moments(communication_calls(trace))
        parts = {
            TimePart.LOADER: loader,
            TimePart.COMPUTE: operators,
            TimePart.COMMUNICATION: communication,
        }
    else:
        parts = {part: trace.busy(*kinds) for part, kinds in DEVICE_PARTS.items()}
        parts[TimePart.LOADER] = loader
        parts[TimePart.HOST] = operators | trace.moments(trace.runtime) | trace.moments(trace.python)
    return divided(trace.window, parts)


def divided(time: Intervals, parts: dict[TimePart, Intervals]) -> dict[TimePart, Intervals]:
    """What a time goes to: each moment once, to the first part that it is in, or to none of them (OTHER)."""
    found: dict[TimePart, Intervals] = {}
    for part, moments in parts.items():
        found[part] = moments & time
        time = time - moments
    return {**found, TimePart.OTHER: time}


# What the profiler itself adds to the times that it shows.


def usual_step(run: Run) -> tuple[float, float] | None:
    """Seconds of a step with the profiler and of one without; None: how long the latter take is not known.

    Medians: workers of a loader hand over several batches at a time, so that one step waits for all of them and the
    next ones for nothing.
    """
    unprofiled = run.rank_facts.get("unprofiled_step")
    if not isinstance(unprofiled, float) or unprofiled <= 0 or run.trace is None or not len(run.trace.steps):
        return None
    steps = np.sort(run.trace.steps.end - run.trace.steps.start)
    return int(steps[(len(steps) - 1) // 2]) / 1e9, unprofiled


def share_without_profiler(run: Run, trace: Trace, moments: Intervals) -> float:
    """The share of a step's time of moments in which the host runs Python: each event there costs the same to write down."""
    usual = usual_step(run)
    if usual is None or usual[0] <= usual[1]:
        return trace.share(moments.total)
    events = np.concatenate([trace.python.start, trace.host.start])
    profiled, unprofiled = usual
    added = (1.0 - unprofiled / profiled) * trace.window.total
    inside = int(moments.holds(events).sum()) / max(int(trace.window.holds(events).sum()), 1)
    left = trace.window.total - added
    return min(max(moments.total - added * inside, 0.0) / left, 1.0) if left > 0 else 0.0
