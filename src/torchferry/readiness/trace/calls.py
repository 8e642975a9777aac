"""Who called whom: the operators of a trace as trees, by thread and time, each with what surrounded it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import NamedTuple

from torchferry.operators.names import CHOOSE_BY_DEVICE
from torchferry.operators.native_functions import Schema, operator_facts, schemas
from torchferry.readiness.model import Phase
from torchferry.readiness.trace.events import OLD_PROFILER, EventRole, OperatorEvent, Signatures
from torchferry.traces.names import (
    backward_step_of,
    is_optimizer_step,
    is_profiler_step,
    module_of,
    note_of,
    operator_of,
    place_in_stack,
    place_of,
)

# what PyTorch's own annotations tell of the program's phase
_MARKS = (
    ("Optimizer.step#", Phase.OPTIMIZER),
    ("Optimizer.zero_grad#", Phase.OPTIMIZER),
    ("enumerate(DataLoader)", Phase.DATA),
)
_FROM_OUTSIDE_IN = {EventRole.PYTHON: 0, EventRole.HOST: 1, EventRole.LAUNCH: 2, EventRole.FLOW_START: 3}


class Surroundings(NamedTuple):
    """What a call lies in: the program's phase, a module, a line, a step of autograd."""

    phase: Phase | None = None  # None: nothing says
    module: str = ""  # Net_0.Conv2d_0
    place: str = ""
    node: str = ""  # autograd's name for the step
    sequence: int = -1  # of that step


class ProfiledCall:
    """One call of an operator."""

    __slots__ = ("children", "event", "operator", "surroundings", "work")

    def __init__(self, event: OperatorEvent, operator: str, surroundings: Surroundings) -> None:
        self.event = event
        self.operator = operator
        self.surroundings = surroundings
        self.children: list[ProfiledCall] = []
        self.work: list[OperatorEvent] = []  # that it handed to a device itself

    def all_work(self) -> Iterator[OperatorEvent]:
        """Its own work, and that of all operators that it called."""
        waiting = [self]
        while waiting:
            call = waiting.pop()
            yield from call.work
            waiting += call.children


@dataclass
class HostTimeline:
    """Everything that the host did."""

    roots: list[ProfiledCall] = field(default_factory=list)
    # who handed work to the device, by category and link of a flow, or by "" and the correlation of a launch
    launches: dict[tuple[str, str], ProfiledCall] = field(default_factory=dict)
    by_external: dict[str, ProfiledCall] = field(default_factory=dict)
    # autograd's number -> when and in what something was called that had it
    forward: dict[int, list[tuple[int, Surroundings]]] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)  # path -> type
    module_starts: list[int] = field(default_factory=list)  # of those that no module called
    backward_ends: list[int] = field(default_factory=list)
    step_starts: list[int] = field(default_factory=list)
    turn_starts: list[int] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    has_python: bool = False  # places are those of functions
    has_places: bool = False


def host_timeline(events: Iterable[OperatorEvent]) -> HostTimeline:
    """Nest the host's events."""
    by_thread: dict[tuple[str, str], list[OperatorEvent]] = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event)
    timeline = HostTimeline()
    for thread in sorted(by_thread):
        _Thread(timeline).walk(sorted(by_thread.pop(thread), key=_order))
    for made in timeline.forward.values():
        made.sort(key=lambda entry: entry[0])
    for times in (timeline.module_starts, timeline.backward_ends, timeline.step_starts, timeline.turn_starts):
        times.sort()
    return timeline


def _order(event: OperatorEvent) -> tuple[int, int, int, int]:
    """Callers before what they call; profilers number operators in the order in which they begin."""
    number = int(event.external) if event.external.isdecimal() and len(event.external) < 20 else 0
    return (event.start, -event.duration, _FROM_OUTSIDE_IN[event.role], number)


class _Open(NamedTuple):
    end: int
    surroundings: Surroundings
    call: ProfiledCall | None  # the innermost operator


class _Thread:
    def __init__(self, timeline: HostTimeline) -> None:
        self._timeline = timeline
        self._open: list[_Open] = []

    def walk(self, events: Iterable[OperatorEvent]) -> None:
        for event in events:
            while self._open and self._open[-1].end <= event.start:
                self._open.pop()
            around = self._open[-1] if self._open else _Open(0, Surroundings(), None)
            if event.role in (EventRole.LAUNCH, EventRole.FLOW_START):
                if around.call is not None and event.link:
                    category = event.category if event.role is EventRole.FLOW_START else ""
                    self._timeline.launches[category, event.link] = around.call
            elif event.role is EventRole.PYTHON:
                within = self._python(event, around.surroundings)
                self._open.append(_Open(event.end, within, around.call))
            else:
                self._open.append(self._host(event, around))

    def _python(self, event: OperatorEvent, around: Surroundings) -> Surroundings:
        if module := module_of(event.name):
            path = f"{around.module}.{module}" if around.module else module
            self._timeline.modules.setdefault(path, module.rpartition("_")[0] or module)
            if not around.module:
                self._timeline.module_starts.append(event.start)
            return around._replace(module=path)
        place = place_of(event.name)
        if place:
            self._timeline.has_python = self._timeline.has_places = True
        return around._replace(place=place) if place else around

    def _host(self, event: OperatorEvent, around: _Open) -> _Open:
        operator = operator_of(event.name, event.thread[0] == OLD_PROFILER)
        within = around.surroundings if operator else self._mark(event, around.surroundings)
        if event.stack and (place := place_in_stack(event.stack)):
            within = within._replace(place=place)
            self._timeline.has_places = True
        if event.sequence >= 0 and within.phase is not Phase.BACKWARD:
            self._timeline.forward.setdefault(event.sequence, []).append((event.start, within))
        if not operator:
            return _Open(event.end, within, around.call)
        call = ProfiledCall(event, operator, within)
        (self._timeline.roots if around.call is None else around.call.children).append(call)
        if event.external:
            self._timeline.by_external[event.external] = call
        return _Open(event.end, within, call)

    def _mark(self, event: OperatorEvent, around: Surroundings) -> Surroundings:
        """An event that is no operator may say what the operators in it are for."""
        if note := note_of(event.name):
            self._timeline.notes.add(note)
        if is_profiler_step(event.name):
            self._timeline.turn_starts.append(event.start)
        if is_optimizer_step(event.name):
            self._timeline.step_starts.append(event.start)
        if step := backward_step_of(event.name):
            self._timeline.backward_ends.append(event.end)
            sequence = event.sequence if event.sequence >= 0 else around.sequence
            return around._replace(phase=Phase.BACKWARD, node=step, sequence=sequence)
        phase = next((phase for start, phase in _MARKS if event.name.startswith(start)), None)
        return around._replace(phase=phase) if phase else around


_IMPLICIT = "CompositeImplicitAutograd"
_EXPLICIT = "CompositeExplicitAutograd"
_CAST = "aten::to"


class CountLevel(Enum):
    """How an operator of a trace counts."""

    THROUGH = "through"  # it only calls others, above autograd: they count
    EXPANDED = "expanded"  # a formula below autograd: it is listed, and those that it calls
    WHOLE = "whole"  # it has a kernel: what that calls is its own affair


def counted(
    roots: Iterable[ProfiledCall], signatures: Signatures, device: str
) -> Iterator[tuple[ProfiledCall, str, bool]]:
    """The calls that count, in the order in which they began: those that the dispatcher hands to a backend, below
    autograd and autocast; each with the operator whose formula made it, and whether it is expanded itself."""
    waiting = [(call, "") for call in reversed(list(roots))]
    while waiting:
        call, inside = waiting.pop()
        schema = signatures.schema_of(call.operator, call.event.inputs)
        level = _level(call, schema, signatures, device)
        if level is not CountLevel.THROUGH:
            yield call, inside, level is CountLevel.EXPANDED
        if level is not CountLevel.WHOLE:
            name = f"aten::{schema.name}" if schema else call.operator
            within = name if level is CountLevel.EXPANDED else inside
            waiting += [(child, within) for child in reversed(call.children)]


def _level(call: ProfiledCall, schema: Schema | None, signatures: Signatures, device: str) -> CountLevel:
    # Autocast converts the arguments, then calls the operator again. Formulas call other overloads: sum, sum.dim.
    called = [child.operator for child in call.children]
    if called.count(call.operator) == 1 and set(called) <= {call.operator, _CAST}:
        again = call.children[called.index(call.operator)]
        if signatures.schema_of(call.operator, again.event.inputs) == schema:
            return CountLevel.THROUGH
    level = level_of(call.operator, schema, device)
    if level is CountLevel.THROUGH and call.work:
        return CountLevel.WHOLE  # an adapter has put a kernel of its own in place of the formula
    if level is CountLevel.EXPANDED and not call.children:
        return CountLevel.WHOLE
    return level


@cache
def level_of(operator: str, schema: Schema | None, device: str) -> CountLevel:
    """How an operator counts that calls others."""
    base = operator.removeprefix("aten::")
    overloads = (schema,) if schema else schemas().get(base, ())
    known = operator_facts()
    facts = [
        known[each.name] for each in overloads if each.name in known and (schema or not each.writes_to_given)
    ]
    if not operator.startswith("aten::") or not facts:
        return CountLevel.WHOLE
    if all(_IMPLICIT in fact.kernels for fact in facts):
        return CountLevel.THROUGH
    if operator in CHOOSE_BY_DEVICE or all(each.is_view for each in overloads):
        return CountLevel.WHOLE
    for fact in facts:
        has_kernel = fact.structured_delegate or not {"CPU", device.upper()}.isdisjoint(fact.kernels)
        if has_kernel or not any(key.startswith(_EXPLICIT) for key in fact.kernels):
            return CountLevel.WHOLE
    return CountLevel.EXPANDED
