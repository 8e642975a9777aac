"""Adds decoded events to columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torchferry.traces.categories import flow_device, is_known_category, kind_of_category
from torchferry.traces.columns import Columns, EventKind, Flags, Interned, Ints
from torchferry.traces.decoding import ABSENT, NO_ARGS, Args, TraceEvent
from torchferry.traces.times import INVALID, nanoseconds

# Arrows of a trace that lead from an operator to its work on the device.


class Flows(NamedTuple):
    """The ends of arrows: those with the same link belong together."""

    link: Ints
    thread: Ints
    time: Ints
    is_start: Flags

    @classmethod
    def joined(cls, parts: list[Flows], origin: int) -> Flows:
        """All of several, with times since an origin."""
        if not parts:
            nothing = np.empty(0, np.int64)
            return cls(nothing, nothing, nothing, np.empty(0, bool))
        link, thread, time, is_start = (np.concatenate(column) for column in zip(*parts, strict=True))
        valid = time != INVALID
        return cls(link[valid], thread[valid], time[valid] - origin, is_start[valid])

    def origins(self, thread: Ints, time: Ints) -> tuple[Flags, Ints, Ints]:
        """For arrows that end at some threads and moments: which were found; the threads and moments they come from."""
        ends = ~self.is_start
        links_at = dict(
            zip(
                zip(self.thread[ends].tolist(), self.time[ends].tolist(), strict=True),
                self.link[ends].tolist(),
                strict=True,
            )
        )
        starts = dict(
            zip(self.link[self.is_start].tolist(), np.flatnonzero(self.is_start).tolist(), strict=True)
        )
        rows = np.array(
            [
                starts.get(links_at.get(place, -1), -1)
                for place in zip(thread.tolist(), time.tolist(), strict=True)
            ],
            np.int64,
        )
        found = rows >= 0
        return found, self.thread[rows[found]], self.time[rows[found]]


MEMORY_EVENT = "[memory]"
_NOTHING = b""


class Collector:
    """Everything that a file holds."""

    def __init__(self) -> None:
        self.parts: list[Columns] = []
        self.names = Interned()
        self.signatures = Interned()
        self.stacks = Interned()
        self.cores = Interned()
        self.threads: list[tuple[str, str]] = []
        self.damaged = 0  # events that lack what every event must have
        self.process_names: dict[str, str] = {}
        self.process_labels: dict[str, str] = {}
        self.thread_names: dict[tuple[str, str], str] = {}
        self.memory: list[
            Ints
        ] = []  # tables: time, type and number of the device, change, allocated, reserved
        self.flows: list[Flows] = []
        self.categories: set[str] = set()
        self.unknown_categories: set[str] = set()  # of events that last
        self._thread_ids: dict[tuple[Any, Any], int] = {}
        self._thread_numbers = Interned()
        self._links = Interned()

    def add(self, events: Sequence[TraceEvent]) -> None:
        """One piece of the file."""
        complete: list[TraceEvent] = []
        memory: list[TraceEvent] = []
        flows: list[TraceEvent] = []
        for event in events:
            phase = event.ph
            if phase == "X":
                complete.append(event)
            elif phase in ("s", "f", "t"):
                if flow_device(event.cat):
                    flows.append(event)
            elif phase == "M":
                self._add_metadata(event)
            elif event.name == MEMORY_EVENT:
                memory.append(event)
        if complete:
            self._add_complete(complete)
        if memory:
            self._add_memory(memory)
        if flows:
            self._add_flows(flows)

    def _add_complete(self, events: list[TraceEvent]) -> None:
        categories = {event.cat for event in events}
        self.categories |= categories
        self.unknown_categories |= {category for category in categories if not is_known_category(category)}
        kinds = np.array([kind_of_category(event.cat) for event in events], np.int64)
        if not kinds.all():
            events = [event for event, kind in zip(events, kinds, strict=True) if kind]
            kinds = kinds[kinds != EventKind.SKIPPED]
        start, duration = (
            nanoseconds([event.ts for event in events]),
            nanoseconds([event.dur or 0 for event in events]),
        )
        args = [event.args or NO_ARGS for event in events]
        names = self.names
        part = Columns(
            kind=kinds,
            name=np.array([names[event.name] for event in events], np.int64),
            thread=self._threads_of(events),
            start=start,
            duration=duration,
            correlation=_numbers([each.correlation for each in args]),
            external=_numbers(
                [each.external_of_2021 if each.external is None else each.external for each in args]
            ),
            signature=self._signatures_of(events, args, kinds),
            stack=self._stacks_of(args),
            nbytes=_numbers([each.nbytes for each in args]),
            core=self._cores_of(args),
        )
        valid = (start != INVALID) & (duration >= 0)
        if not valid.all():
            self.damaged += int((~valid).sum())
            part = part.take(valid)
        self.parts.append(part)

    def _threads_of(self, events: list[TraceEvent]) -> Ints:
        known = self._thread_ids
        found: list[int] = []
        for event in events:
            key = (event.pid, event.tid)
            number = known.get(key)
            found.append(self._new_thread(key) if number is None else number)
        return np.array(found, np.int64)

    def _new_thread(self, key: tuple[Any, Any]) -> int:
        """Of 25738 and "25738" alike: some profilers write both."""
        thread = (_text(key[0]), _text(key[1]))
        number = self._thread_ids[key] = self._thread_numbers[thread]
        if number == len(self.threads):
            self.threads.append(thread)
        return number

    def _signatures_of(self, events: list[TraceEvent], args: list[Args], kinds: Ints) -> Ints:
        known = self.signatures
        found = np.full(len(args), -1, np.int64)
        for row in np.flatnonzero(kinds == EventKind.OPERATOR).tolist():
            each = args[row]
            if each.dims is not ABSENT or each.types is not ABSENT:
                concrete = bytes(each.concrete) if "conv" in events[row].name else _NOTHING
                found[row] = known[bytes(each.dims), bytes(each.types), bytes(each.strides), concrete]
        return found

    def _stacks_of(self, args: list[Args]) -> Ints:
        known = self.stacks
        return np.array([-1 if each.stack is ABSENT else known[bytes(each.stack)] for each in args], np.int64)

    def _cores_of(self, args: list[Args]) -> Ints:
        known = self.cores
        return np.array([known[each.task_type] if each.task_type else -1 for each in args], np.int64)

    def _add_flows(self, events: list[TraceEvent]) -> None:
        self.categories.update({event.cat for event in events})
        links = self._links
        self.flows.append(
            Flows(
                np.array([links[event.cat, _text(event.id)] for event in events], np.int64),
                self._threads_of(events),
                nanoseconds([event.ts for event in events]),
                np.array([event.ph == "s" for event in events], bool),
            )
        )

    def _add_metadata(self, event: TraceEvent) -> None:
        process = _text(event.pid)
        args = event.args or NO_ARGS
        if event.name == "process_name":
            self.process_names[process] = _text(args.name)
        elif event.name == "process_labels":
            self.process_labels[process] = _text(args.labels)
        elif event.name == "thread_name":
            self.thread_names[process, _text(event.tid)] = _text(args.name)

    def _add_memory(self, events: list[TraceEvent]) -> None:
        args = [event.args or NO_ARGS for event in events]
        table = np.stack(
            [
                nanoseconds([event.ts for event in events]),
                _numbers([each.device_type for each in args]),
                _numbers([each.device_id for each in args]),
                _numbers([each.changed_by for each in args]),
                _numbers([each.allocated for each in args]),
                _numbers([each.reserved for each in args]),
            ],
            axis=1,
        )
        self.memory.append(table[table[:, 0] != INVALID])


def _numbers(values: list[Any]) -> Ints:
    try:
        return np.array(
            [-1 if value is None else value if type(value) is int else _number(value) for value in values],
            np.int64,
        )
    except OverflowError:
        return np.array([_number(value) for value in values], np.int64)


def _number(value: Any) -> int:
    """-1 where there is none."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else -1
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return _number(int(value))
    return int(value) if isinstance(value, float) and abs(value) < 2**62 else -1


def _text(value: Any) -> str:
    return "" if value is None else str(value)
