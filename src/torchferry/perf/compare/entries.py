"""What a run spends its work on: one entry for the calls of an operator with the same shapes and types."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torchferry.perf.compare.model import Measure
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import KernelTable
from torchferry.perf.tables.operators import OperatorTable
from torchferry.traces.columns import EventKind, Flags, Interned, Ints
from torchferry.traces.model import Trace
from torchferry.traces.names import operator_of

MOST_KERNELS = 3  # names of an entry


class CallKey(NamedTuple):
    """What calls have in common."""

    operator: str
    shapes: str = ""
    dtypes: str = ""


@dataclass
class CallTimes:
    """What calls with the same key cost in all steps, in nanoseconds."""

    key: CallKey
    order: int  # by when it came first
    calls: int = 0
    time: int = 0  # by the run's measure
    host_time: int = 0
    kernels: tuple[str, ...] = ()
    callers: tuple[CallKey, ...] = ()  # of the first call, itself and then outwards: operators only
    place: str = ""
    is_kernel: bool = False  # work of the device that no operator is known for


@dataclass
class RunWork:
    """All that a run spends its work on."""

    measure: Measure
    entries: list[CallTimes] = field(default_factory=list)
    left_over: int = 0  # nanoseconds of work that had been given to the device before the steps began

    @property
    def time(self) -> int:
        """The nanoseconds of all entries together."""
        return sum(entry.time for entry in self.entries)


def work_of(run: Run, with_shapes: bool) -> RunWork:
    """A run's entries, by its trace, or else by the table of kernels or of operators."""
    if run.trace is not None:
        return _TraceWork(run.trace, with_shapes).work()
    if run.kernels is not None:
        return _of_kernels(run.kernels, with_shapes)
    return _of_operators(run.operators, with_shapes) if run.operators is not None else RunWork(Measure.DEVICE)


def has_shapes(run: Run) -> bool:
    """Whether operators of different shapes can be told apart."""
    if run.trace is not None:
        return run.trace.has_shapes
    if run.kernels is not None:
        return any(any(signature) for signature in run.kernels.signatures)
    return run.operators is not None and any(row.shapes for row in run.operators.rows)


class _TraceWork:
    """Gathers the operators of a trace's window, and the work that they gave to the device."""

    def __init__(self, trace: Trace, with_shapes: bool) -> None:
        self._trace = trace
        self._with_shapes = with_shapes
        host = trace.host
        self._rows: Ints = np.flatnonzero((host.kind == EventKind.OPERATOR) & trace.in_window(host))
        self._texts: dict[int, tuple[str, str]] = {}

    def work(self) -> RunWork:
        trace = self._trace
        measure = Measure.HOST if trace.is_host_only else Measure.DEVICE
        found = RunWork(measure)
        if len(self._rows):
            found.entries = self._operators()
        if measure is Measure.DEVICE:
            unowned, earlier = self._unowned()
            found.left_over = int(trace.device.duration[earlier].sum())
            found.entries += self._kernels(unowned, len(found.entries))
        return found

    @cached_property
    def _meant(self) -> Ints:
        """For each row of the host the operator that it is a part of: what a library calls goes to PyTorch's operator."""
        trace = self._trace
        is_operator = trace.names_that(operator_of)[trace.host.name]
        meant = np.arange(len(trace.host))
        open_rows = ~is_operator
        while open_rows.any():
            meant = np.where(open_rows, np.where(meant >= 0, trace.parent[meant], -1), meant)
            open_rows = (meant >= 0) & ~is_operator[meant]
        return np.where(meant >= 0, meant, np.arange(len(trace.host)))

    @cached_property
    def _group_of(self) -> tuple[Ints, list[CallKey], Ints]:
        """For each row of the host the number of its entry, -1 outside the window; the entries' keys; their first rows."""
        keys = Interned()
        host = self._trace.host
        group: Ints = np.full(len(host), -1, np.int64)
        named = np.unique(self._meant[self._rows])
        _, first, place = np.unique(
            host.name[named] * (len(self._trace.raw_signatures) + 1) + host.signature[named] + 1,
            return_index=True,
            return_inverse=True,
        )
        numbers = np.array([keys[self._key(int(row))] for row in named[first].tolist()], np.int64)
        group[named] = numbers[place]
        firsts: Ints = np.full(len(keys), len(host), np.int64)
        by_time = named[np.argsort(-host.start[named], kind="stable")]
        firsts[group[by_time]] = by_time  # the last to be set is the first to have come
        return group, list(keys), firsts

    def _key(self, row: int) -> CallKey:
        trace = self._trace
        name, signature = trace.names[int(trace.host.name[row])], int(trace.host.signature[row])
        if not self._with_shapes:
            return CallKey(name)
        if signature not in self._texts:
            decoded = trace.signature(signature)
            self._texts[signature] = decoded.shapes_text, decoded.dtypes_text
        return CallKey(name, *self._texts[signature])

    def _operators(self) -> list[CallTimes]:
        trace, rows = self._trace, self._rows
        group, keys, firsts = self._group_of
        meant = group[self._meant[rows]]
        count = len(keys)
        calls = np.bincount(meant[self._meant[rows] == rows], minlength=count)
        own = np.bincount(meant, weights=trace.own_time[rows], minlength=count).astype(np.int64)
        time = own
        if not trace.is_host_only:
            time = np.bincount(meant, weights=trace.device_time[rows], minlength=count).astype(np.int64)
        kernels = self._kernel_names(group)
        order = np.argsort(np.argsort(trace.host.start[firsts], kind="stable"), kind="stable")
        return [
            CallTimes(
                key,
                int(order[at]),
                int(calls[at]),
                int(time[at]),
                int(own[at]),
                kernels.get(at, ()),
                self._callers(int(firsts[at])),
                place,
            )
            for at, (key, place) in enumerate(zip(keys, trace.places(firsts), strict=True))
        ]

    def _callers(self, row: int) -> tuple[CallKey, ...]:
        trace = self._trace
        found = []
        while row >= 0:
            if operator_of(trace.names[int(trace.host.name[row])]):
                found.append(self._key(row))
            row = int(trace.parent[row])
        return tuple(found)

    def _kernel_names(self, group: Ints) -> dict[int, tuple[str, ...]]:
        """For each entry the work that took longest."""
        trace = self._trace
        owned = self._owned_in_window()
        if not owned.any():
            return {}
        count = len(trace.names)
        owner = group[self._meant[trace.owner[owned]]]
        pairs, place = np.unique(owner * count + trace.device.name[owned], return_inverse=True)
        time = np.bincount(place, weights=trace.device.duration[owned])
        found: dict[int, tuple[str, ...]] = {}
        for at in np.argsort(-time, kind="stable").tolist():
            entry, name = divmod(int(pairs[at]), count)
            if len(found.get(entry, ())) < MOST_KERNELS:
                found[entry] = (*found.get(entry, ()), trace.names[name])
        return found

    def _owned_in_window(self) -> Flags:
        """Which work of the device was given to it by an operator of the window."""
        trace = self._trace
        wanted = np.zeros(len(trace.host) + 1, bool)
        wanted[self._rows] = True
        return wanted[trace.owner]  # the last is that of -1: not known

    def _unowned(self) -> tuple[Flags, Flags]:
        """Work of the window without an operator; and what of it had been queued before: it began before all other."""
        trace = self._trace
        unowned = (trace.owner < 0) | (trace.host.kind[trace.owner] != EventKind.OPERATOR)
        unowned &= trace.in_window(trace.device)
        owned = self._owned_in_window()
        if not owned.any():
            return unowned, np.zeros(len(trace.device), bool)
        first = int(trace.device.start[owned].min())
        known = trace.owner >= 0
        earlier = unowned & ~known & (trace.device.start < first)
        return unowned & ~earlier, earlier

    def _kernels(self, rows: Flags, order: int) -> list[CallTimes]:
        device = self._trace.device.take(rows)
        if not len(device):
            return []
        names, group = np.unique(device.name, return_inverse=True)
        calls = np.bincount(group)
        time = np.bincount(group, weights=device.duration).astype(np.int64)
        return [
            CallTimes(
                CallKey(name := self._trace.names[number]),
                order + at,
                int(calls[at]),
                int(time[at]),
                0,
                (name,),
                is_kernel=True,
            )
            for at, number in enumerate(names.tolist())
        ]


def _of_kernels(table: KernelTable, with_shapes: bool) -> RunWork:
    """The table's types are its operators."""
    found: dict[CallKey, CallTimes] = {}
    for group in table.groups:
        shapes = (group.signature.input_shapes, group.signature.input_dtypes) if with_shapes else ()
        key = CallKey(group.type or group.name, *shapes)
        entry = found.setdefault(key, CallTimes(key, len(found), callers=(key,), is_kernel=True))
        entry.calls += group.calls
        entry.time += round(group.seconds * 1e9)
        if group.name not in entry.kernels and len(entry.kernels) < MOST_KERNELS:
            entry.kernels = (*entry.kernels, group.name)
    return RunWork(Measure.DEVICE, list(found.values()))


def _of_operators(table: OperatorTable, with_shapes: bool) -> RunWork:
    on_device = any(row.device_seconds for row in table.rows) and table.device != "cpu"
    found: dict[CallKey, CallTimes] = {}
    for row in table.rows:
        key = CallKey(row.operator, row.shapes, row.dtypes) if with_shapes else CallKey(row.operator)
        entry = found.setdefault(key, CallTimes(key, len(found), is_kernel=not table.has_host_time))
        entry.calls += row.calls
        entry.time += round((row.device_seconds if on_device else row.host_seconds) * 1e9)
        entry.host_time += round(row.host_seconds * 1e9)
    return RunWork(Measure.DEVICE if on_device else Measure.HOST, list(found.values()))
