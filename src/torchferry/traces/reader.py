"""Reads a trace: kineto's of 2021 to today, CPU-only and AMD ones, and vendors' timelines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.errors import InputError
from torchferry.text import Text
from torchferry.traces.categories import (
    CUDA,
    device_kind,
    flow_device,
    is_annotation,
    is_of_simulator,
    kind_by_process,
    launching_device,
    moves_within_device,
    other_launching_device,
)
from torchferry.traces.chunks import Chunks
from torchferry.traces.collecting import Collector, Flows
from torchferry.traces.columns import DEVICE_KINDS, HOST_KINDS, Columns, EventKind, Ints
from torchferry.traces.decoding import Decoder
from torchferry.traces.model import DeviceMemoryEvents, Steps, Thread, Trace
from torchferry.traces.nesting import Nested, nest

# Finds rows by numbers that both sides have.


def matched(wanted: Ints, known: Ints) -> Ints:
    """For each number the last row that has it; -1: none."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, wanted, side="right", sorter=order) - 1
    rows = order[np.maximum(place, 0)]
    return np.where((wanted > 0) & (place >= 0) & (known[rows] == wanted), rows, -1)


_STEP = re.compile(r"ProfilerStep\s*#(\d{1,18})(?!\d)")
_OPTIMIZER = "Optimizer.step#"
_CATEGORIES = 6  # that a note names
_DEVICE_TYPES_OF_TORCH = {
    0: "cpu",
    1: CUDA,
    6: CUDA,
    12: "xpu",
}  # others are those of a plugin, whatever its name

_PLUGIN, _PLUGIN_OF_TORCH = (
    "privateuse1",
    20,
)  # what PyTorch calls a plugin's device whose name it does not write

_CUT_SHORT = Text(
    "{file} ends in the middle: it was read up to its last whole event.",
    "{file} 在中途结束：已读到最后一个完整事件。",
)
_UNKNOWN_CATEGORIES = Text(
    "{file}: events of categories that are not known ({categories}) count as work of the device where their process is "
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
            f"{str(path)!r} holds no events of a profiler: record with activities=[ProfilerActivity.CPU, ...] "
            "while the program computes"
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
    events.kind = _sorted_out(events, names, collector)
    events = events.take(events.kind != EventKind.SKIPPED)
    if not len(events):
        raise InputError(
            f"{str(path)!r} is a trace without operators of PyTorch and without work of a device"
        )
    origin = int(events.start.min())
    flows = Flows.joined(collector.flows, origin)
    events.start = events.start - origin
    host = nest(events.where(*HOST_KINDS))
    device = events.where(*DEVICE_KINDS).in_order()
    runtime = events.where(EventKind.RUNTIME)
    device_type = _device_type(collector, len(device) > 0)
    properties = _device_properties(about)
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
        torch=_torch_version(about),
        rank=_rank(about),
        memory=_memory(collector.memory, origin, device_type),
        memory_limit=_whole(properties.get("totalGlobalMem")),
        about=about,
        raw_signatures=list(collector.signatures),
        raw_stacks=list(collector.stacks),
        cores=list(collector.cores),
        is_simulated=any(map(is_of_simulator, names)),
    )


def _sorted_out(events: Columns, names: list[str], collector: Collector) -> Ints:
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
    found = [
        _kind_by_process(collector, pair // len(names), names[pair % len(names)]) for pair in pairs.tolist()
    ]
    kind[unsorted] = np.array(found, np.int64)[which]
    return kind


def _kind_by_process(collector: Collector, thread: int, name: str) -> EventKind:
    process = collector.threads[thread][0]
    return kind_by_process(
        collector.process_names.get(process, process), collector.process_labels.get(process, ""), name
    )


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
    numbers = {
        number: int(found[1]) for number, name in enumerate(names) if (found := _STEP.match(name)) is not None
    }
    rows = np.flatnonzero(np.isin(host.name, list(numbers)) & (host.kind == EventKind.ANNOTATION))
    if len(rows):
        rows = rows[np.argsort(host.start[rows], kind="stable")]
        number = np.array([numbers[name] for name in host.name[rows].tolist()], np.int64)
        return Steps(number, host.start[rows], host.end[rows])
    return _steps_between_optimizers(host, names)


def _steps_between_optimizers(host: Columns, names: list[str]) -> Steps:
    """From the end of an optimizer's step to the end of its next one; what came before the first end is a step too."""
    marks = [number for number, name in enumerate(names) if name.startswith(_OPTIMIZER)]
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
        start, _, _, changed_by, allocated, reserved = table[
            (table[:, 1] == kind) & (table[:, 2] == number)
        ].T
        found[_device(kind, number, device_type)] = DeviceMemoryEvents(
            start - origin, changed_by, allocated, reserved
        )
    return found


def _device(kind: int, number: int, device_type: str) -> str:
    """npu:0, of the number that PyTorch gives to a type of devices."""
    name = _DEVICE_TYPES_OF_TORCH.get(kind, device_type)
    return name if name == "cpu" else f"{name}:{max(number, 0)}"


def _device_properties(about: dict[str, Any]) -> dict[str, Any]:
    devices = about.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else {}
    return first if isinstance(first, dict) else {}


def _torch_version(about: dict[str, Any]) -> str:
    found = (about.get(key) for key in ("torch_version", "pytorch_version", "PyTorch version"))
    return next((value for value in found if isinstance(value, str)), "")


def _rank(about: dict[str, Any]) -> int | None:
    distributed = about.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    return rank if isinstance(rank, int) else None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
