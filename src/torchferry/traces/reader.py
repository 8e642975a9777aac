"""Reads a trace: kineto's of 2021 to today, CPU-only and AMD ones, and vendors' timelines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchferry.errors import InputError
from torchferry.text import Text
from torchferry.traces.chunks import Chunks
from torchferry.traces.columns import (
    DEVICE_KINDS,
    HOST_KINDS,
    INVALID,
    Columns,
    EventKind,
    Flags,
    Interned,
    Ints,
    nanoseconds,
)
from torchferry.traces.decoding import ABSENT, NO_ARGS, Args, Decoder, TraceEvent, text_of
from torchferry.traces.model import DeviceMemoryEvents, Nested, Steps, Thread, Trace, nest
from torchferry.traces.names import (
    CUDA,
    device_kind,
    flow_device,
    is_annotation,
    is_known_category,
    is_of_simulator,
    is_optimizer_step,
    kind_by_process,
    kind_of_category,
    launching_device,
    moves_within_device,
    other_launching_device,
)


class Flows(NamedTuple):
    """The ends of arrows that lead from operators to their work on the device: those with the same link belong together."""

    link: Ints
    thread: Ints
    time: Ints
    is_start: Flags

    @classmethod
    def joined(cls, parts: list[Flows], origin: int) -> Flows:
        """All arrows of several pieces, with times since an origin."""
        if not parts:
            nothing = np.empty(0, np.int64)
            return cls(nothing, nothing, nothing, np.empty(0, bool))
        link, thread, time, is_start = (np.concatenate(column) for column in zip(*parts, strict=True))
        valid = time != INVALID
        return cls(link[valid], thread[valid], time[valid] - origin, is_start[valid])

    def origins(self, thread: Ints, time: Ints) -> tuple[Flags, Ints, Ints]:
        """For arrows that end at some threads and moments: which were found; the threads and moments they come from."""
        ends = ~self.is_start
        places = zip(self.thread[ends].tolist(), self.time[ends].tolist(), strict=True)
        links_at = dict(zip(places, self.link[ends].tolist(), strict=True))
        starts = dict(
            zip(self.link[self.is_start].tolist(), np.flatnonzero(self.is_start).tolist(), strict=True)
        )
        asked = zip(thread.tolist(), time.tolist(), strict=True)
        rows = np.array([starts.get(links_at.get(place, -1), -1) for place in asked], np.int64)
        found = rows >= 0
        return found, self.thread[rows[found]], self.time[rows[found]]


_MEMORY_EVENT = "[memory]"


class Collector:
    """Everything that a file holds, as columns."""

    def __init__(self) -> None:
        self.parts: list[Columns] = []
        self.names = Interned()
        self.signatures = Interned()
        self.stacks = Interned()
        self.cores = Interned()
        self.threads = Interned()  # processes and threads
        self.damaged = 0  # events that lack what every event must have
        self.process_names: dict[str, str] = {}
        self.process_labels: dict[str, str] = {}
        self.thread_names: dict[tuple[str, str], str] = {}
        # Tables: time, type and number of the device, change, allocated, reserved.
        self.memory: list[Ints] = []
        self.flows: list[Flows] = []
        self.categories: set[str] = set()
        self.unknown_categories: set[str] = set()  # of events that last
        self._thread_ids: dict[tuple[Any, Any], int] = {}
        self._links = Interned()

    def add(self, events: Sequence[TraceEvent]) -> None:
        """Add the events of a piece of the file."""
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
            elif event.name == _MEMORY_EVENT:
                memory.append(event)
        if complete:
            self._add_complete(complete)
        if memory:
            args = [event.args or NO_ARGS for event in memory]
            names = ("device_type", "device_id", "changed_by", "allocated", "reserved")
            columns = [_numbers([getattr(each, name) for each in args]) for name in names]
            table = np.stack([nanoseconds([event.ts for event in memory]), *columns], axis=1)
            self.memory.append(table[table[:, 0] != INVALID])
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
        start = nanoseconds([event.ts for event in events])
        duration = nanoseconds([event.dur or 0 for event in events])
        args = [event.args or NO_ARGS for event in events]
        names, stacks, cores = self.names, self.stacks, self.cores
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
            stack=np.array(
                [-1 if each.stack is ABSENT else stacks[bytes(each.stack)] for each in args], np.int64
            ),
            nbytes=_numbers([each.nbytes for each in args]),
            core=np.array([cores[each.task_type] if each.task_type else -1 for each in args], np.int64),
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
            if key not in known:  # 25738 and "25738" are one thread: some profilers write both
                known[key] = self.threads[text_of(event.pid), text_of(event.tid)]
            found.append(known[key])
        return np.array(found, np.int64)

    def _signatures_of(self, events: list[TraceEvent], args: list[Args], kinds: Ints) -> Ints:
        known = self.signatures
        found = np.full(len(args), -1, np.int64)
        for row in np.flatnonzero(kinds == EventKind.OPERATOR).tolist():
            each = args[row]
            if each.dims is not ABSENT or each.types is not ABSENT:
                concrete = bytes(each.concrete) if "conv" in events[row].name else b""
                found[row] = known[bytes(each.dims), bytes(each.types), bytes(each.strides), concrete]
        return found

    def _add_flows(self, events: list[TraceEvent]) -> None:
        self.categories.update({event.cat for event in events})
        links = self._links
        self.flows.append(
            Flows(
                np.array([links[event.cat, text_of(event.id)] for event in events], np.int64),
                self._threads_of(events),
                nanoseconds([event.ts for event in events]),
                np.array([event.ph == "s" for event in events], bool),
            )
        )

    def _add_metadata(self, event: TraceEvent) -> None:
        process = text_of(event.pid)
        args = event.args or NO_ARGS
        if event.name == "process_name":
            self.process_names[process] = text_of(args.name)
        elif event.name == "process_labels":
            self.process_labels[process] = text_of(args.labels)
        elif event.name == "thread_name":
            self.thread_names[process, text_of(event.tid)] = text_of(args.name)


def _numbers(values: list[Any]) -> Ints:
    try:
        return np.array(
            [-1 if value is None else value if type(value) is int else _number(value) for value in values],
            np.int64,
        )
    except OverflowError:
        return np.array([_number(value) for value in values], np.int64)


def _number(value: Any) -> int:
    """A number; -1 where there is none."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else -1
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return _number(int(value))
    return int(value) if isinstance(value, float) and abs(value) < 2**62 else -1


def matched(wanted: Ints, known: Ints) -> Ints:
    """For each number the last row that has it; -1: none."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, wanted, side="right", sorter=order) - 1
    rows = order[np.maximum(place, 0)]
    return np.where((wanted > 0) & (place >= 0) & (known[rows] == wanted), rows, -1)


_STEP = re.compile(r"ProfilerStep\s*#(\d{1,18})(?!\d)")
_CATEGORIES = 6  # that a note names
# Others are those of a plugin, whatever its name.
_DEVICE_TYPES_OF_TORCH = {0: "cpu", 1: CUDA, 6: CUDA, 12: "xpu"}
# What PyTorch calls a plugin's device whose name it does not write.
_PLUGIN, _PLUGIN_OF_TORCH = "privateuse1", 20

_CUT_SHORT = Text(
    "{file} ends in the middle: it was read up to its last whole event.",
    "{file} 在中途结束：已读到最后一个完整事件。",
)
_UNKNOWN_CATEGORIES = Text(
    "{file}: events of unknown categories ({categories}) count as work of the device where their process is "
    "labelled as one; the others were left out.",
    "{file}：未知类别的事件（{categories}），其进程标为设备的计为设备任务，其余已略去。",
)
_NO_WORK = Text(
    "{file} has calls of the {device} runtime but no work of the device: times are the host's. Profile the device's activity "
    "too.",
    "{file} 有 {device} 运行时的调用，但没有设备任务：时间只是主机的。请同时采集设备活动。",
)
_DAMAGED = Text("{file}: {count} damaged events were left out.", "{file}：略去了 {count} 个损坏的事件。")


def read_trace(path: Path, on_bytes: Callable[[int], None] | None = None) -> Trace:
    """InputError if it is none, or holds nothing that an analysis can be about. `on_bytes`: so many were read."""
    chunks = Chunks(path)
    decoder = Decoder(chunks)
    collector = Collector()
    for events in decoder:
        collector.add(events)
        if on_bytes is not None:
            on_bytes(chunks.position)
    if not collector.parts:
        raise InputError(
            Text(
                f"{str(path)!r} holds no profiler events; record with activities=[ProfilerActivity.CPU, ...] "
                "while the program computes",
                f"{str(path)!r} 没有 profiler 事件；请在程序计算时以 activities=[ProfilerActivity.CPU, ...] 采集",
            )
        )
    trace = _build(path, collector, chunks.about)
    unknown = sorted(collector.unknown_categories)
    if unknown:
        trace.notes.append(
            _UNKNOWN_CATEGORIES.format(file=path.name, categories=", ".join(unknown[:_CATEGORIES]))
        )
    if len(trace.runtime) and trace.is_host_only:
        trace.notes.append(_NO_WORK.format(file=path.name, device=trace.device_type))
    if chunks.is_cut_short:
        trace.notes.append(_CUT_SHORT.format(file=path.name))
    if damaged := decoder.damaged + collector.damaged:
        trace.notes.append(_DAMAGED.format(file=path.name, count=damaged))
    return trace


def _build(path: Path, collector: Collector, about: dict[str, Any]) -> Trace:
    names = list(collector.names)
    events = Columns.joined(collector.parts)
    collector.parts.clear()
    events.kind = _final_kinds(events, names, collector)
    events = events.take(events.kind != EventKind.SKIPPED)
    if not len(events):
        raise InputError(
            Text(
                f"{str(path)!r} is a trace without PyTorch operators and without device activity; profile again "
                "with both",
                f"{str(path)!r} 中既没有 PyTorch 算子，也没有设备活动；请重新采集并包含二者",
            )
        )
    origin = int(events.start.min())
    flows = Flows.joined(collector.flows, origin)
    events.start = events.start - origin
    host = nest(events.where(*HOST_KINDS))
    device = events.where(*DEVICE_KINDS).in_order()
    runtime = events.where(EventKind.RUNTIME)
    device_type = _device_type(collector, has_work=len(device) > 0)
    devices, distributed = about.get("deviceProperties"), about.get("distributedInfo")
    properties = devices[0] if isinstance(devices, list) and devices and isinstance(devices[0], dict) else {}
    limit = properties.get("totalGlobalMem")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    versions = (about.get(key) for key in ("torch_version", "pytorch_version", "PyTorch version"))
    return Trace(
        path=str(path),
        device_type=device_type,
        names=names,
        threads=[_thread(collector, thread) for thread in collector.threads],
        host_calls=host,
        python=events.where(EventKind.PYTHON),
        runtime=runtime,
        device=device,
        owner=_owners(device, host, runtime, flows),
        steps=_steps(host.events, names),
        span=(0, int(events.end.max())),
        origin=origin,
        device_name=str(properties.get("name", "")),
        torch=next((version for version in versions if isinstance(version, str)), ""),
        rank=rank if isinstance(rank, int) else None,
        memory=_memory(collector.memory, origin, device_type),
        memory_limit=limit if isinstance(limit, int) and limit > 0 else 0,
        about=about,
        raw_signatures=list(collector.signatures),
        raw_stacks=list(collector.stacks),
        cores=list(collector.cores),
        is_simulated=any(map(is_of_simulator, names)),
    )


def _final_kinds(events: Columns, names: list[str], collector: Collector) -> Ints:
    """Kinds, after a look at names and processes."""
    kind: Ints = events.kind.copy()
    marks = np.array([is_annotation(name) for name in names], bool)
    kind[(kind == EventKind.OPERATOR) & marks[events.name]] = EventKind.ANNOTATION
    kind[np.array([is_of_simulator(name) for name in names], bool)[events.name]] = EventKind.SKIPPED
    on_device = np.flatnonzero(kind == EventKind.COMPUTE)
    if len(on_device):
        by_name = np.array([device_kind(name) for name in names], np.int64)
        # A kernel may communicate; that one is called memcpy something does not make it a copy of the runtime's.
        communicates = by_name[events.name[on_device]] == EventKind.COMMUNICATION
        kind[on_device[communicates]] = EventKind.COMMUNICATION
    moves = np.array([moves_within_device(name) for name in names], bool)
    kind[(kind == EventKind.COPY) & moves[events.name]] = EventKind.MOVE
    unsorted = np.flatnonzero(kind == EventKind.UNSORTED)
    # each distinct pair is looked at once: vendors' timelines have no categories at all
    pairs, which = np.unique(
        events.thread[unsorted] * len(names) + events.name[unsorted], return_inverse=True
    )
    threads = list(collector.threads)
    found = []
    for thread, name in (divmod(pair, len(names)) for pair in pairs.tolist()):
        process, _ = threads[thread]
        process_name = collector.process_names.get(process, process)
        label = collector.process_labels.get(process, "")
        found.append(kind_by_process(process_name, label, names[name]))
    kind[unsorted] = np.array(found, np.int64)[which]
    return kind


def _owners(device: Columns, host: Nested, runtime: Columns, flows: Flows) -> Ints:
    """Which operator launched the work: by its number, by the call of the runtime, or by a flow between the two."""
    owner = matched(device.external, host.events.external)
    by_call = matched(device.correlation, runtime.correlation)
    asked = np.flatnonzero((owner < 0) & (by_call >= 0))
    if len(asked):
        calls = by_call[asked]
        owner[asked] = host.enclosing(runtime.thread[calls], runtime.start[calls])
    asked = np.flatnonzero(owner < 0)
    if len(asked) and len(flows.link):
        found, thread, time = flows.origins(device.thread[asked], device.start[asked])
        owner[asked[found]] = host.enclosing(thread, time)
    return owner


def _steps(host: Columns, names: list[str]) -> Steps:
    """The profiler's; else from the end of an optimizer's step to that of its next, with what came before the first."""
    numbers = {number: int(found[1]) for number, name in enumerate(names) if (found := _STEP.match(name))}
    rows = np.flatnonzero(np.isin(host.name, list(numbers)) & (host.kind == EventKind.ANNOTATION))
    if len(rows):
        rows = rows[np.argsort(host.start[rows], kind="stable")]
        number = np.array([numbers[name] for name in host.name[rows].tolist()], np.int64)
        return Steps(number, host.start[rows], host.end[rows])
    marks = [number for number, name in enumerate(names) if is_optimizer_step(name)]
    rows = np.flatnonzero(np.isin(host.name, marks))
    if not len(rows):
        nothing = np.empty(0, np.int64)
        return Steps(nothing, nothing, nothing)
    first = host.name[rows[np.argmin(host.start[rows])]]  # of several optimizers one
    ends = np.sort(host.end[rows[host.name[rows] == first]])
    starts = np.concatenate([[int(host.start.min())], ends[:-1]])
    return Steps(np.arange(1, len(ends) + 1), starts, ends, "optimizer")


def _thread(collector: Collector, thread: tuple[str, str]) -> Thread:
    process, number = thread
    own_name = collector.thread_names.get(thread, "")
    process_name = collector.process_names.get(process, process)
    own = own_name if number in own_name else f"{own_name} {number}".strip()
    return Thread(process, number, f"{process_name} {own}".strip())


def _device_type(collector: Collector, has_work: bool) -> str:
    """Where no category names it, memory of a plugin's device tells that there is one."""
    categories = collector.categories
    named = [*map(flow_device, sorted(categories)), *map(launching_device, sorted(categories))]
    others = map(other_launching_device, sorted(categories))  # of no vendor that is known here
    found = next((device for device in (*named, *others) if device), "")
    if found or has_work:
        return found or CUDA
    return _PLUGIN if any((table[:, 1] == _PLUGIN_OF_TORCH).any() for table in collector.memory) else "cpu"


def _memory(tables: list[Ints], origin: int, device_type: str) -> dict[str, DeviceMemoryEvents]:
    if not tables:
        return {}
    table = np.concatenate(tables)
    table = table[np.argsort(table[:, 0], kind="stable")]
    found: dict[str, DeviceMemoryEvents] = {}
    for kind, number in np.unique(table[:, 1:3], axis=0).tolist():
        rows = (table[:, 1] == kind) & (table[:, 2] == number)
        start, _, _, changed_by, allocated, reserved = table[rows].T
        name = _DEVICE_TYPES_OF_TORCH.get(kind, device_type)
        device = name if name == "cpu" else f"{name}:{max(number, 0)}"
        found[device] = DeviceMemoryEvents(start - origin, changed_by, allocated, reserved)
    return found
