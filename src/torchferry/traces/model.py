"""A trace that was read: the host's operators, the device's work, and which called which."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from torchferry.text import Text
from torchferry.traces.columns import Columns, EventKind, Flags, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.names import place_in_stack, place_of
from torchferry.traces.nesting import Nested, nest
from torchferry.traces.places import Sources


class TraceSignature(NamedTuple):
    """What an operator was called with: one item per argument. Lists of tensors are lists of lists."""

    dims: list[Any]
    types: list[Any]
    strides: list[Any]  # empty: not recorded
    concrete: list[Any]  # texts; recorded for convolutions only


class Steps(NamedTuple):
    """The turns of the training loop; times as in Columns. No turns: the trace does not tell them apart."""

    number: Ints
    start: Ints
    end: Ints
    basis: str = "profiler"  # profiler: its own marks; optimizer: from one optimizer's step to the next

    def __len__(self) -> int:
        return len(self.start)


class DeviceMemoryEvents(NamedTuple):
    """The memory events of one device."""

    start: Ints
    changed_by: Ints
    allocated: Ints  # -1: not recorded
    reserved: Ints


class Thread(NamedTuple):
    """Where events lie."""

    process: str
    thread: str
    name: str  # for people: "python thread 25738", "Ascend Hardware stream 3"


@dataclass
class Trace:
    """One process's trace. Rows of `host` and `device` are in the order of Columns.in_order."""

    path: str
    device_type: str  # cuda, npu ...; cpu where no device is seen
    names: list[str]
    threads: list[Thread]
    host_calls: Nested  # operators and annotations
    python: Columns  # Python's frames, in no order
    runtime: Columns  # calls of the device's library
    device: Columns  # the device's work: of the kinds COMPUTE, COMMUNICATION, COPY, FILL
    owner: Ints  # for each row of `device` the row in `host` that launched it; -1: not known
    steps: Steps
    span: tuple[int, int]  # the beginning and the end of everything
    origin: int = 0  # that beginning by the file's own clock, in nanoseconds
    device_name: str = ""
    torch: str = ""
    rank: int | None = None
    memory: dict[str, DeviceMemoryEvents] = field(default_factory=dict)  # by device: "npu:0", "cpu"
    memory_limit: int = 0  # bytes of the device; 0: not known
    about: dict[str, Any] = field(default_factory=dict)
    notes: list[Text] = field(default_factory=list)
    raw_signatures: list[tuple[bytes, bytes, bytes, bytes]] = field(default_factory=list)
    raw_stacks: list[bytes] = field(default_factory=list)
    cores: list[str] = field(default_factory=list)  # the parts of the device that Columns.core numbers
    is_simulated: bool = False
    source_folders: tuple[Path, ...] = ()  # in which the program's files may lie, beside the current one

    @property
    def host(self) -> Columns:
        """Operators and annotations."""
        return self.host_calls.events

    @property
    def parent(self) -> Ints:
        """The row of `host` that a row of it lies in; -1: none."""
        return self.host_calls.parent

    @cached_property
    def own_time(self) -> Ints:
        """Of each row of `host`, without what it called."""
        return self.host_calls.own_time

    @cached_property
    def device_time(self) -> Ints:
        """For each row of `host`, the time of the work that it gave to the device itself."""
        owned = self.owner >= 0
        sums = np.bincount(self.owner[owned], weights=self.device.duration[owned], minlength=len(self.host))
        return sums.astype(np.int64)

    @property
    def is_host_only(self) -> bool:
        """Whether the operators are the work: on the CPU, on a simulated device, or where the device was not traced."""
        return not len(self.device)

    @property
    def has_shapes(self) -> bool:
        """Whether the profiler recorded what operators were called with."""
        return bool(self.raw_signatures)

    @cached_property
    def has_strides(self) -> bool:
        """Whether that tells contiguous inputs from others."""
        return any(strides for _, _, strides, _ in self.raw_signatures)

    def name_ids(self, *texts: str, prefix: str = "") -> list[int]:
        """The numbers of some names, or of all that begin with something."""
        if prefix:
            return [number for number, name in enumerate(self.names) if name.startswith(prefix)]
        wanted = set(texts)
        return [number for number, name in enumerate(self.names) if name in wanted]

    def host_rows(self, *texts: str, prefix: str = "") -> Ints:
        """The rows of `host` with these names."""
        return np.flatnonzero(np.isin(self.host.name, self.name_ids(*texts, prefix=prefix)))

    def signature(self, number: int) -> TraceSignature:
        """Decoded; empty for -1."""
        if number < 0:
            return TraceSignature([], [], [], [])
        known = self._signatures.get(number)
        if known is None:
            known = self._signatures[number] = TraceSignature(*map(_list, self.raw_signatures[number]))
        return known

    @cached_property
    def _signatures(self) -> dict[int, TraceSignature]:
        return {}

    @cached_property
    def frames(self) -> Nested:
        """Python's frames, nested."""
        return nest(self.python)

    def places(self, rows: Ints) -> list[str]:
        """For rows of `host`, the innermost line of the program that called; "" where it is not known."""
        if len(self.python):
            return self.places_at(self.host.thread[rows], self.host.start[rows])
        return [self._place_in_stack(number) for number in self.host.stack[rows].tolist()]

    def _place_in_stack(self, number: int) -> str:
        if number < 0:
            return ""
        try:
            stack = msgspec.json.decode(self.raw_stacks[number])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        return place_in_stack(stack) if isinstance(stack, str) else ""

    def places_at(self, thread: Ints, time: Ints) -> list[str]:
        """For moments of threads, the innermost place in the program by Python's frames; "" where there are none."""
        frames = self.frames
        if not len(frames.events):
            return [""] * len(time)
        rows = frames.enclosing(thread, time)
        called = np.full(len(rows), -1, np.int64)  # the frame that the program's own one called
        while (outside := (rows >= 0) & ~self._is_program[frames.events.name[rows]]).any():
            called = np.where(outside, rows, called)
            rows = np.where(outside, frames.parent[rows], rows)
        names = np.where(rows >= 0, frames.events.name[rows], -1)
        called_names = np.where(called >= 0, frames.events.name[called], -1)
        pairs = list(zip(names.tolist(), called_names.tolist(), strict=True))
        known = {pair: self._place(*pair) for pair in set(pairs)}
        return [known[pair] for pair in pairs]

    def _place(self, name: int, called: int) -> str:
        if name < 0:
            return ""
        return self._sources.place(self.names[name], self.names[called] if called >= 0 else "")

    @cached_property
    def _sources(self) -> Sources:
        return Sources(Path(self.path), self.source_folders)

    @cached_property
    def _is_program(self) -> Flags:
        """Which names are those of frames that are neither PyTorch's nor Python's own."""
        found: Flags = np.zeros(len(self.names), bool)
        frames = np.unique(self.python.name)
        found[frames] = [bool(place_of(self.names[number])) for number in frames.tolist()]
        return found

    @cached_property
    def window(self) -> Intervals:
        """The time that an analysis is about: the steps, or else everything."""
        if len(self.steps):
            return Intervals.union(self.steps.start, self.steps.end)
        return Intervals(np.array([self.span[0]]), np.array([self.span[1]]))

    @property
    def seconds(self) -> float:
        """Of the window."""
        return self.window.total / 1e9

    def in_window(self, events: Columns) -> Flags:
        """Which events begin in the window."""
        if not len(self.window.start):  # steps without length
            return np.zeros(len(events), bool)
        row = np.searchsorted(self.window.start, events.start, side="right") - 1
        inside: Flags = (row >= 0) & (events.start < self.window.end[np.maximum(row, 0)])
        return inside

    def share(self, nanoseconds: float) -> float:
        """Of the window's time."""
        return float(nanoseconds) / self.window.total if self.window.total else 0.0

    def moments(self, events: Columns) -> Intervals:
        """When any of some events was going on, within the window."""
        return Intervals.union(events.start, events.end) & self.window

    def busy(self, *kinds: EventKind) -> Intervals:
        """When the device did such work, within the window."""
        return self.moments(self.device.where(*kinds))


def _list(raw: bytes) -> list[Any]:
    if not raw:
        return []
    try:
        read = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return read if isinstance(read, list) else []
