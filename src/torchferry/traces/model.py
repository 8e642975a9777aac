"""A trace that was read: the host's operators, the device's work, and which called which."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torchferry.text import Text
from torchferry.traces.columns import Columns, EventKind, Flags, Ints
from torchferry.traces.decoding import decoded_json
from torchferry.traces.intervals import Intervals
from torchferry.traces.names import DTYPES, place_in_stack, place_of
from torchferry.traces.places import Sources

_LONGEST_LIST = 3  # tensors of a list that are written out


class Nested(NamedTuple):
    """Events in the order of Columns.in_order, and which of them each lies in."""

    events: Columns
    parent: Ints  # the row of the innermost event that a row lies in; -1: none

    @property
    def own_time(self) -> Ints:
        """Without the events that lie in it."""
        inside = self.parent >= 0
        inner = np.bincount(
            self.parent[inside], weights=self.events.duration[inside], minlength=len(self.events)
        )
        return np.maximum(self.events.duration - inner.astype(np.int64), 0)

    def enclosing(self, thread: Ints, time: Ints) -> Ints:
        """The innermost event of a thread at a time; -1: none."""
        found = np.full(len(time), -1, np.int64)
        events = self.events
        for number in np.unique(thread).tolist():
            first, last = np.searchsorted(events.thread, [number, number + 1])
            if first == last:
                continue
            asked = thread == number
            moments = time[asked]
            row = np.searchsorted(events.start[first:last], moments, side="right") - 1 + first
            row = np.where(row < first, -1, row)
            while (
                over := (row >= 0) & (events.end[row] < moments)
            ).any():  # the first caller that was not over yet
                row = np.where(over, self.parent[row], row)
            found[asked] = row
        return found

    def outermost(self, wanted: Ints) -> Ints:
        """Of some rows those that lie in none of the others."""
        is_wanted = np.zeros(len(self.events), bool)
        is_wanted[wanted] = True
        above = self.parent[wanted]
        hidden = np.zeros(len(wanted), bool)
        while (above >= 0).any():
            hidden |= (above >= 0) & is_wanted[above]
            above = np.where(above >= 0, self.parent[above], -1)
        return wanted[~hidden]


def nest(events: Columns) -> Nested:
    """Events of several threads, in any order."""
    events = events.in_order()
    parent: list[int] = []
    open_ends: list[int] = []
    open_rows: list[int] = []
    current = -1
    rows = zip(events.thread.tolist(), events.start.tolist(), events.end.tolist(), strict=True)
    for row, (thread, start, end) in enumerate(rows):
        if thread != current:
            current = thread
            open_ends.clear()
            open_rows.clear()
        # One that ends with or after its beginning is around it; one that is over, or ends before it ends, is not.
        while open_ends and (open_ends[-1] <= start or open_ends[-1] < end):
            open_ends.pop()
            open_rows.pop()
        parent.append(open_rows[-1] if open_rows else -1)
        open_ends.append(end)
        open_rows.append(row)
    return Nested(events, np.array(parent, np.int64))


class TraceSignature(NamedTuple):
    """What an operator was called with: one item per argument. Lists of tensors are lists of lists."""

    dims: list[Any]
    types: list[Any]
    strides: list[Any]  # empty: not recorded
    concrete: list[Any]  # texts; recorded for convolutions only

    @property
    def shapes_text(self) -> str:
        """The shapes of the tensors, in the order of the arguments: `64×3×224×224, 64×3×7×7`."""
        tensors = [dims for dims in self.dims if dims]
        if len(self.types) == len(self.dims):  # tensors without dimensions, not numbers and missing arguments
            pairs = zip(self.dims, self.types, strict=True)
            tensors = [dims for dims, kind in pairs if dims or (isinstance(kind, str) and kind in DTYPES)]
        return ", ".join(filter(None, map(_shape, tensors)))

    @property
    def dtypes_text(self) -> str:
        """The types of the tensors; the same type in a row is written once, with its number: `float32×2, int64`."""
        named = [DTYPES[each] for each in self.types if isinstance(each, str) and each in DTYPES]
        runs = ((name, len(list(run))) for name, run in groupby(named))
        return ", ".join(name if count == 1 else f"{name}×{count}" for name, count in runs)


def _shape(dims: Any) -> str:
    if not isinstance(dims, list):
        return ""
    if not dims:
        return "()"
    if all(isinstance(each, list) for each in dims):
        shown = ", ".join(_shape(each) for each in dims[:_LONGEST_LIST])
        return f"[{shown}, … {len(dims)}]" if len(dims) > _LONGEST_LIST else f"[{shown}]"
    return "×".join(map(str, dims)) if len(dims) > 1 else f"({dims[0]},)"


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
    """A thread of the host, or a stream of the device."""

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
    _signatures: dict[int, TraceSignature] = field(
        default_factory=dict, repr=False
    )  # those that were asked for

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

    def names_like(self, pattern: re.Pattern[str]) -> list[int]:
        """The numbers of the names in which a pattern is found."""
        return [number for number, name in enumerate(self.names) if pattern.search(name)]

    def names_that(self, fits: Callable[[str], object]) -> Flags:
        """For each number of a name whether the name fits."""
        return np.array([bool(fits(name)) for name in self.names], bool)

    def host_rows(self, *texts: str, prefix: str = "") -> Ints:
        """The rows of `host` with these names."""
        return np.flatnonzero(np.isin(self.host.name, self.name_ids(*texts, prefix=prefix)))

    def signature(self, number: int) -> TraceSignature:
        """What an operator was called with; empty for -1."""
        if number < 0:
            return TraceSignature([], [], [], [])
        if number not in self._signatures:
            read = map(decoded_json, self.raw_signatures[number])
            self._signatures[number] = TraceSignature(
                *(each if isinstance(each, list) else [] for each in read)
            )
        return self._signatures[number]

    @cached_property
    def frames(self) -> Nested:
        """Python's frames, nested."""
        return nest(self.python)

    def places(self, rows: Ints) -> list[str]:
        """For rows of `host`, the innermost line of the program that called; "" where it is not known."""
        if len(self.python):
            return self.places_at(self.host.thread[rows], self.host.start[rows])
        numbers = self.host.stack[rows].tolist()
        stacks = [decoded_json(self.raw_stacks[number]) if number >= 0 else None for number in numbers]
        return [place_in_stack(stack) if isinstance(stack, str) else "" for stack in stacks]

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
        texts = [*self.names, ""]  # the last is that of -1
        known = {pair: self._sources.place(texts[pair[0]], texts[pair[1]]) for pair in set(pairs)}
        return [known[pair] for pair in pairs]

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
        """The seconds of the window."""
        return self.window.total / 1e9

    def in_window(self, events: Columns) -> Flags:
        """Which events begin in the window."""
        return self.window.holds(events.start)

    def of_window(self, events: Columns) -> Columns:
        """The events that begin in the window."""
        return events.take(self.in_window(events))

    def share(self, nanoseconds: float) -> float:
        """A share of the window's time."""
        return float(nanoseconds) / self.window.total if self.window.total else 0.0

    def share_of(self, events: Columns) -> float:
        """The share of the window's time in which any of some events was going on."""
        return self.share(self.moments(events).total)

    def moments(self, events: Columns) -> Intervals:
        """When any of some events was going on, within the window."""
        return Intervals.union(events.start, events.end) & self.window

    def busy(self, *kinds: EventKind) -> Intervals:
        """When the device did such work, within the window."""
        return self.moments(self.device.where(*kinds))
