"""Where the program waits for the device: which calls, of which lines, and how long the device stands still after."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from torchferry.perf.detect.events import (
    events_like,
    frames_with,
    lies_in,
    marks,
    operators_in_window,
    outermost_operators,
)
from torchferry.perf.detect.evidence import names_of
from torchferry.perf.model import TimePart
from torchferry.perf.run import Run, loader_waits
from torchferry.traces.columns import DEVICE_KINDS, Columns, EventKind, Flags, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.model import Trace

PRINTING = "torch/_tensor_str.py"
# Calls of devices' libraries that return when the device has done its work. Copies that are not asynchronous, too.
_WAITING_CALL = re.compile(
    r"synchronize|queue_?sync|sync_?device|queuefinish|memcpy(?!.*async)", re.IGNORECASE
)
_UPLOAD = re.compile(r"htod|host_?to_?device|host2dev", re.IGNORECASE)
# Operators whose result the host must see: a number, or how large it is.
_READS_AND_SIZES = (
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
)
_COPIES = "aten::_to_copy"  # which way, the function tells that makes it
_FETCHING_FRAMES = ("<built-in method cpu of", "<built-in method tolist of")
# Frames of libraries that read numbers which lie on the host, or that no program can do without.
_EXCUSED_FRAMES = (PRINTING, "torch/optim/", "grad_scaler.py", "torch/profiler/", "torchferry/perf/")
_CHECKED_BY_AUTOGRAD = "autograd::engine::evaluate_function"


class Waits(NamedTuple):
    """The times at which the program waits for the device."""

    row: Ints  # the outermost operator, in `host`; -1: the program called the library itself
    name: list[str]
    start: Ints
    time: Ints
    thread: Ints  # of the host's operators
    idle_after: Intervals  # until the device has work again, as far as the wait can be the reason

    def __len__(self) -> int:
        return len(self.row)


def waits_for_device(run: Run, trace: Trace) -> Waits:
    """All waits: by the calls of the device's library; where no device was traced, by the operators that need one."""
    return _by_operators(trace) if trace.is_host_only or not len(trace.host) else _by_calls(run, trace)


def _by_calls(run: Run, trace: Trace) -> Waits:
    calls = events_like(trace, trace.runtime, _WAITING_CALL)
    thread = _threads_of_host(trace)[calls.thread]
    operator = trace.host_calls.enclosing(thread, calls.start)
    is_operator = (operator >= 0) & (trace.host.kind[operator] == EventKind.OPERATOR)
    operator = np.where(is_operator, operator, -1)
    uploading = trace.owner[upload_rows(trace)]
    kept = ~_excused(trace, thread, calls.start) & ~np.isin(operator, uploading[uploading >= 0])
    calls, operator, thread = calls.take(kept), operator[kept], thread[kept]
    outer = outermost_operators(trace, operator)
    start = np.where(operator >= 0, trace.host.start[operator], calls.start)
    end = np.where(operator >= 0, trace.host.end[operator], calls.end)
    # An operator may call more than once: it is one wait.
    _, first = np.unique(np.where(operator >= 0, operator, -2 - np.arange(len(operator))), return_index=True)
    names = [
        trace.names[int(trace.host.name[row] if row >= 0 else calls.name[at])]
        for at, row in zip(first.tolist(), outer[first].tolist(), strict=True)
    ]
    start, end = start[first], end[first]
    return Waits(outer[first], names, start, end - start, thread[first], _idle_after(run, trace, start, end))


def _by_operators(trace: Trace) -> Waits:
    rows = operators_in_window(trace)
    name = trace.host.name[rows]
    fetches = np.isin(name, trace.name_ids(_COPIES)) & lies_in(
        trace.host.thread[rows], trace.host.start[rows], frames_with(trace, *_FETCHING_FRAMES)
    )
    rows = rows[fetches | np.isin(name, trace.name_ids(*_READS_AND_SIZES))]
    rows = rows[~_excused(trace, trace.host.thread[rows], trace.host.start[rows])]
    # The check for NaN of torch.autograd.detect_anomaly reads as well.
    outer = outermost_operators(trace, rows)
    above = trace.parent[outer]
    checks = (above >= 0) & np.isin(trace.host.name[above], trace.name_ids(prefix=_CHECKED_BY_AUTOGRAD))
    outer = np.unique(outer[~checks])
    host = trace.host.take(outer)
    return Waits(outer, names_of(trace, host.name), host.start, host.duration, host.thread, Intervals())


def _threads_of_host(trace: Trace) -> Ints:
    """For each thread the one of the same number that calls operators: some profilers give libraries a process."""
    calling = {trace.threads[number].thread: number for number in np.unique(trace.host.thread).tolist()}
    return np.array(
        [calling.get(thread.thread, number) for number, thread in enumerate(trace.threads)], np.int64
    )


def _excused(trace: Trace, thread: Ints, time: Ints) -> Flags:
    """Loaders wait for workers, prints are another diagnosis, optimizers read numbers that lie on the host."""
    around = Columns.joined(
        [loader_waits(trace), marks(trace, "Optimizer.step#"), frames_with(trace, *_EXCUSED_FRAMES)]
    )
    return lies_in(thread, time, around)


def upload_rows(trace: Trace) -> Ints:
    """The rows of `device` that copied something to it."""
    uploads = np.isin(trace.device.name, trace.names_like(_UPLOAD))
    return np.flatnonzero((trace.device.kind == EventKind.COPY) & uploads)


def _idle_after(run: Run, trace: Trace, start: Ints, end: Ints) -> Intervals:
    """How long the device stands still: without the wait, the host would have been ahead by its length, and no more."""
    idle = trace.window - trace.busy(*DEVICE_KINDS)
    if not len(idle.start) or not len(end):
        return Intervals()
    row = np.searchsorted(idle.start, end, side="right") - 1
    stands_still = (row >= 0) & (end < idle.end[np.maximum(row, 0)])
    begin, length = end[stands_still], (end - start)[stands_still]
    until = np.minimum(idle.end[row[stands_still]], begin + length)
    return Intervals.union(begin, until) & (run.parts[TimePart.HOST] | run.parts[TimePart.OTHER])
