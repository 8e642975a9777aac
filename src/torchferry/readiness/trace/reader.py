"""Reads a profiler's file, and tells which operators it holds: a trace, or the table that `key_averages().table()` prints,
which has names, calls and times, but not who called whom.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from torchferry.errors import InputError
from torchferry.operators.names import CALLED_ELSEWHERE
from torchferry.operators.native_functions import schemas
from torchferry.readiness.model import TRACE, Capture, ModuleInfo, OperatorSite, Phase, Signature
from torchferry.readiness.trace.calls import (
    CountLevel,
    HostTimeline,
    ProfiledCall,
    Surroundings,
    counted,
    host_timeline,
    level_of,
)
from torchferry.readiness.trace.events import (
    EventReader,
    EventRole,
    Folding,
    OperatorEvent,
    Signatures,
    shapes_of,
)
from torchferry.text import Text
from torchferry.traces.chunks import OTHER_TEXT, Chunks, no_trace
from torchferry.traces.decoding import Decoder
from torchferry.traces.names import (
    CUDA,
    flow_device,
    is_optimizer_step,
    is_profiler_step,
    launching_device,
    note_of,
    operator_of,
)
from torchferry.traces.printed import (
    NAME,
    Row,
    printed_nanoseconds,
    table_device,
    table_lines,
    table_rows,
    text_pieces,
)


class Sites:
    """Where the calls of one trace were made."""

    def __init__(self, timeline: HostTimeline) -> None:
        self._timeline = timeline
        # only a trace with modules tells; what autograd keeps belongs to the forward pass
        starts = [*timeline.module_starts[:1], *timeline.turn_starts[:1], *timeline.backward_ends[:1]]
        self._setup_ends = min(starts) if timeline.module_starts else 0
        self._known: dict[OperatorSite, OperatorSite] = {}

    def of(self, call: ProfiledCall, inside: str) -> OperatorSite:
        """The site of a call that `inside` made."""
        around = call.surroundings
        phase = around.phase or Phase.FORWARD
        if not around.phase and not around.module:
            if self._is_between_backward_and_step(call.event.start):
                phase = Phase.OPTIMIZER
            elif call.event.start < self._setup_ends:
                phase = Phase.SETUP
        if phase is Phase.BACKWARD:
            made = self._made(around.sequence, call.event.start)
            site = OperatorSite(phase, made.module, made.place, around.node, inside)
        else:
            site = OperatorSite(phase, around.module, around.place, "", inside)
        return self._known.setdefault(site, site)

    def _made(self, sequence: int, before: int) -> Surroundings:
        """What the forward call lay in that made a step of the backward pass.

        All calls since the last step was made have the same number: the one that made it is the last of them.
        Each thread counts for itself, so it must also lie before the backward pass.
        """
        made = self._timeline.forward.get(sequence, ())
        index = bisect_left(made, before, key=lambda entry: entry[0])
        return made[index - 1][1] if index else Surroundings()

    def _is_between_backward_and_step(self, time: int) -> bool:
        """Clipping, scaling, averaging: what is done to gradients before the optimizer's step."""
        timeline = self._timeline
        index = bisect_right(timeline.step_starts, time)
        if index == len(timeline.step_starts):
            return False
        step = timeline.step_starts[index]
        last_backward = _last(timeline.backward_ends, time)
        earlier = max(_last(timeline.module_starts, time), timeline.step_starts[index - 1] if index else -1)
        nothing_between = _last(timeline.backward_ends, step) == last_backward
        return last_backward > earlier and nothing_between


def _last(times: list[int], until: int) -> int:
    """The last of the times that is not after this one; -1 if there is none."""
    index = bisect_right(times, until)
    return times[index - 1] if index else -1


def add_device_work(timeline: HostTimeline, work: Iterable[OperatorEvent]) -> None:
    """Give the work of a device to the operators that asked for it. Work whose operator is not known is left out."""
    flows: dict[tuple[tuple[str, str], int], OperatorEvent] = {}
    others: list[OperatorEvent] = []
    for event in work:
        if event.role is EventRole.FLOW_END:
            flows[event.thread, event.start] = event
        else:
            others.append(event)
    for event in others:
        flow = flows.get((event.thread, event.start))
        if flow is not None:
            owner = timeline.launches.get((flow.category, flow.link))
        elif event.role is EventRole.DEVICE:
            owner = timeline.launches.get(("", event.link)) or timeline.by_external.get(event.external)
        else:
            continue
        if owner is not None:
            owner.work.append(event)


def device_of(launches: Iterable[str], flows: Iterable[str], has_kernels: bool) -> str:
    """The type of the device that computed, by the categories of launches and flows."""
    named = [*map(flow_device, flows), *map(launching_device, launches)]
    return next((device for device in named if device), CUDA if has_kernels else "cpu")


_VERSIONS = ("torch_version", "pytorch_version", "PyTorch version")  # of PyTorch, as profilers name it
_START = attrgetter("start")
_HOST_ROLES = (EventRole.HOST, EventRole.PYTHON, EventRole.LAUNCH, EventRole.FLOW_START)


def read_trace(path: Path) -> Capture:
    """The operators of a trace of torch.profiler or torch.autograd.profiler, or of the table that they print."""
    pieces = text_pieces(path)
    start = next(pieces, "")
    if start.lstrip()[:1] in ("{", "["):
        return _TraceReader(path).capture()
    return read_table(path, chain((start,), pieces))


class Launch(NamedTuple):
    """One call of an operator, and the work that it gave to the device: kernels and copies, with nanoseconds."""

    signature: Signature
    site: OperatorSite
    kernels: tuple[tuple[str, int], ...]


class Launches(NamedTuple):
    """The calls of a trace, in the order in which they began within each thread."""

    device: str
    calls: tuple[Launch, ...]


def read_launches(path: Path) -> Launches:
    """Which operators of a trace launched which kernels."""
    if next(text_pieces(path), "").lstrip()[:1] not in ("{", "["):
        raise InputError(
            Text(
                f"{str(path)!r} is a table or other text, but only a trace tells which kernels an operator "
                "launched; give what the profiler's export_chrome_trace() wrote (.json, .json.gz)",
                f"{str(path)!r} 是表格或其他文本，而只有 trace 才说明算子下发了哪些 kernel；请给出 profiler 的 "
                "export_chrome_trace() 写入的文件（.json、.json.gz）",
            )
        )
    return _TraceReader(path).launches()


class _TraceReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks = Chunks(path)
        self._decoder = Decoder(self._chunks)
        self._reader = EventReader()
        self._host: list[OperatorEvent] = []
        self._work: list[OperatorEvent] = []
        self._is_trace = False
        self._launches: set[str] = set()
        self._flows: set[str] = set()

    def launches(self) -> Launches:
        self._read()
        device = self._device()
        timeline = self._timeline()
        sites = Sites(timeline)
        signatures = Signatures()
        calls = [
            Launch(
                signatures.of(call.operator, call.event.inputs, device),
                sites.of(call, inside),
                tuple((event.name, event.duration) for event in sorted(_work(call, expanded), key=_START)),
            )
            for call, inside, expanded in counted(timeline.roots, signatures, device)
        ]
        return Launches(device, tuple(calls))

    def capture(self) -> Capture:
        self._read()
        device = self._device()
        spans = [(event.start, event.end) for event in self._host if event.role is EventRole.HOST]
        processes = {event.thread[0] for event in self._host if event.role is EventRole.HOST}
        timeline = self._timeline()
        about = self._chunks.about
        sites, signatures, folding = Sites(timeline), Signatures(), Folding()
        for call, inside, expanded in counted(timeline.roots, signatures, device):
            site = sites.of(call, inside)
            where = "cpu" if site.phase.is_on_host else device
            signature = signatures.of(call.operator, call.event.inputs, where)
            if device == "cpu":  # the host's time; of an expanded operator without those that it called
                inner = sum(child.event.duration for child in call.children) if expanded else 0
                time = max(0, call.event.duration - inner)
            else:
                time = sum(event.duration for event in _work(call, expanded))
            folding.add(signature, site, 1, time, expanded)
        return Capture(
            program=str(self._path),
            origin=TRACE,
            device=device,
            torch=next((about[key] for key in _VERSIONS if isinstance(about.get(key), str)), ""),
            steps=len(timeline.step_starts) or len(timeline.turn_starts),
            seconds=(max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9,
            processes=len(processes),
            uses=folding.uses(),
            modules=tuple(ModuleInfo(module, type_) for module, type_ in timeline.modules.items()),
            notes=tuple(self._notes(timeline, signatures, folding)),
        )

    def _read(self) -> None:
        for events in self._decoder:
            self._is_trace |= any(event.ph for event in events)
            for event in self._reader.read(events):
                if event.role is EventRole.FLOW_START:
                    self._flows.add(event.category)
                elif event.role is EventRole.LAUNCH:
                    self._launches.add(event.category)
                (self._host if event.role in _HOST_ROLES else self._work).append(event)
        if any(event.role is EventRole.HOST for event in self._host):
            return
        if self._is_trace or self._chunks.is_object:
            raise InputError(
                Text(
                    f"{str(self._path)!r} is a trace without PyTorch operators; record with "
                    "activities=[ProfilerActivity.CPU, ...] while the program computes",
                    f"{str(self._path)!r} 中没有 PyTorch 算子；请在程序计算时以 activities=[ProfilerActivity.CPU, "
                    "...] 采集",
                )
            )
        raise no_trace(self._path, Text("a JSON list of something else", "其他内容的 JSON 列表"))

    def _device(self) -> str:
        has_kernels = any(event.role is EventRole.DEVICE for event in self._work)
        return device_of(sorted(self._launches), sorted(self._flows), has_kernels)

    def _timeline(self) -> HostTimeline:
        timeline = host_timeline(self._host)
        self._host.clear()
        add_device_work(timeline, self._work)
        return timeline

    def _notes(self, timeline: HostTimeline, signatures: Signatures, folding: Folding) -> Iterator[str]:
        if self._chunks.is_cut_short or self._decoder.damaged or self._reader.damaged:
            yield "truncated"
        yield from sorted(timeline.notes)
        if not signatures.has_shapes:
            yield "no_shapes"
        if signatures.has_open_overloads:
            yield "no_overloads"
        if not timeline.step_starts:
            yield "no_step"
        if timeline.modules:
            yield "module_types"
        if not timeline.has_places:
            yield "no_places"
        elif timeline.has_python:
            yield "function_lines"
        if folding.has_varied:
            yield "varied"


def _work(call: ProfiledCall, expanded: bool) -> Iterable[OperatorEvent]:
    """What a call made the device do; of an expanded operator without those that it called."""
    return call.work if expanded else call.all_work()


_SHAPES = "Input Shapes"
_CUT = "..."
_ATEN = "aten::"


def read_table(path: Path, pieces: Iterable[str]) -> Capture:
    """The operators of all tables in the file; other lines, such as a program's own output, are passed over."""
    rows = list(table_rows(table_lines(pieces)))
    if not rows:
        raise no_trace(path, OTHER_TEXT)
    return _TableReader(path).capture(rows)


class _TableReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._signatures = Signatures()
        self._folding = Folding()
        self._notes = {"flat": True, "no_places": True, "no_overloads": True}
        self._steps = 0
        self._turns = 0
        self._host_time = 0

    def capture(self, rows: list[Row]) -> Capture:
        device = next((device for row in rows if (device := table_device(row))), "cpu")
        for row in rows:
            self._add(row, device)
        uses = self._folding.uses()
        if not uses:
            raise no_trace(self._path, Text("a table without PyTorch operators", "没有 PyTorch 算子的表格"))
        if not self._steps:
            self._notes["no_step"] = True
        if not self._signatures.has_shapes:
            self._notes["no_shapes"] = True
        return Capture(
            program=str(self._path),
            origin=TRACE,
            device=device,
            steps=self._steps or self._turns,
            seconds=self._host_time / 1e9,
            uses=uses,
            notes=tuple(self._notes),
        )

    def _add(self, row: Row, device: str) -> None:
        name, calls = row[NAME], int(row["calls"])
        self._host_time += printed_nanoseconds(row.get("host time", ""))
        if note := note_of(name):
            self._notes[note] = True
        self._steps += calls if is_optimizer_step(name) else 0
        self._turns += calls if is_profiler_step(name) else 0
        operator = self._operator(name)
        level = level_of(operator, None, device)
        if not operator or level is CountLevel.THROUGH:
            return
        # what the host chose to compute with has all the time: to its callers a table gives their own time only
        is_choice = operator.removeprefix(_ATEN) in CALLED_ELSEWHERE
        phase = Phase.BACKWARD if operator.endswith("_backward") else Phase.FORWARD
        signature = self._signatures.of(operator, shapes_of(row.get(_SHAPES, "")), device)
        time = printed_nanoseconds(row["host time"] if device == "cpu" else row.get(device, ""))
        self._folding.add(
            signature, OperatorSite(phase), calls, time, level is CountLevel.EXPANDED and not is_choice
        )

    def _operator(self, name: str) -> str:
        if not name.endswith(_CUT):
            return operator_of(name, of_old_profiler=True)
        start = name.removesuffix(_CUT).removeprefix(_ATEN)
        meant = [base for base in schemas() if base.startswith(start)]
        if len(meant) != 1 and name.startswith(_ATEN):
            self._notes["short_names"] = True
        return f"{_ATEN}{meant[0]}" if len(meant) == 1 else ""
