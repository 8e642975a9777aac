"""The events of a trace that tell of operators, in the one form from which calls are nested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from torchferry.traces.columns import INVALID, EventKind, nanoseconds
from torchferry.traces.decoding import ABSENT, NO_ARGS, Args, TraceEvent
from torchferry.traces.names import flow_device, kind_of_category

OLD_PROFILER = "CPU functions"  # the process, in what torch.autograd.profiler wrote before it was rebuilt
_LOOKS_LIKE_OPERATOR = re.compile(r"\w+::\w+")


class EventRole(Enum):
    """What an event is for whoever asks which operators were called."""

    HOST = "host"  # an operator, a step of autograd, an annotation: the names tell them apart
    PYTHON = "python"  # a call of a Python function or a module
    LAUNCH = "launch"  # the host hands work to the device
    DEVICE = "device"  # the device works
    UNNAMED = "unnamed"  # of no category: the device's, if a flow says so
    FLOW_START = "flow_start"
    FLOW_END = "flow_end"


_FLOWS = (EventRole.FLOW_START, EventRole.FLOW_END)
_ROLES = {
    EventKind.OPERATOR: EventRole.HOST,
    EventKind.ANNOTATION: EventRole.HOST,
    EventKind.PYTHON: EventRole.PYTHON,
    EventKind.RUNTIME: EventRole.LAUNCH,
    EventKind.COMPUTE: EventRole.DEVICE,
    EventKind.COPY: EventRole.DEVICE,
    EventKind.FILL: EventRole.DEVICE,
}


class ProfiledInputs(NamedTuple):
    """What an operator was called with, as the profiler wrote it: a list each, one item per argument."""

    dims: Any = None
    types: Any = None
    strides: Any = None
    concrete: Any = None


_NO_INPUTS = ProfiledInputs()


class OperatorEvent(NamedTuple):
    """Times are nanoseconds."""

    role: EventRole
    name: str
    category: str
    thread: tuple[str, str]  # process and thread, or device and stream
    start: int
    duration: int
    link: str = ""  # what connects a launch or a flow with its work on the device
    external: str = ""  # the operator's number
    sequence: int = -1  # autograd's number, the same for the operator and its backward step
    inputs: ProfiledInputs = _NO_INPUTS
    stack: str = ""  # Python's frames, the innermost first, divided by semicolons

    @property
    def end(self) -> int:
        """When it was over."""
        return self.start + self.duration


class EventReader:
    """Picks out the events that matter here; what thousands of them have in common is kept once."""

    def __init__(self) -> None:
        self.damaged = 0  # events that lack what every event must have
        self._threads: dict[tuple[Any, Any], tuple[str, str]] = {}
        self._inputs: dict[tuple[bytes, ...], ProfiledInputs] = {}
        self._stacks: dict[bytes, str] = {}

    def read(self, events: Sequence[TraceEvent]) -> Iterator[OperatorEvent]:
        """Those of one piece of the file."""
        wanted = [(event, role) for event in events if (role := _role(event)) is not None]
        starts = nanoseconds([event.ts for event, _ in wanted]).tolist()
        durations = nanoseconds([event.dur or 0 for event, _ in wanted]).tolist()
        for (event, role), start, duration in zip(wanted, starts, durations, strict=True):
            if start == INVALID or duration < 0:
                self.damaged += 1
            else:
                yield self._event(event, role, start, duration)

    def _event(self, event: TraceEvent, role: EventRole, start: int, duration: int) -> OperatorEvent:
        args = event.args or NO_ARGS
        made = OperatorEvent(
            role,
            event.name,
            event.cat,
            self._thread(event),
            start,
            duration,
            link=_text(event.id if role in _FLOWS else args.correlation),
            external=_text(args.external_of_2021 if args.external is None else args.external),
        )
        if role is not EventRole.HOST or args is NO_ARGS:
            return made
        return made._replace(
            sequence=args.sequence if isinstance(args.sequence, int) else -1,
            inputs=self._inputs_of(args),
            stack=self._stack(bytes(args.stack)),
        )

    def _thread(self, event: TraceEvent) -> tuple[str, str]:
        key = (event.pid, event.tid)
        known = self._threads.get(key)
        if known is None:
            known = self._threads[key] = (_text(event.pid), _text(event.tid))
        return known

    def _inputs_of(self, args: Args) -> ProfiledInputs:
        types = args.types_of_old if args.types is ABSENT else args.types
        key = (bytes(args.dims), bytes(types), bytes(args.strides), bytes(args.concrete))
        known = self._inputs.get(key)
        if known is None:
            known = self._inputs[key] = ProfiledInputs(*map(_decoded, key))
        return known

    def _stack(self, raw: bytes) -> str:
        if raw not in self._stacks:
            self._stacks[raw] = _text(_decoded(raw))
        return self._stacks[raw]


def _role(event: TraceEvent) -> EventRole | None:
    if event.ph in ("s", "f"):
        if not flow_device(event.cat):
            return None
        return EventRole.FLOW_START if event.ph == "s" else EventRole.FLOW_END
    if event.ph != "X":
        return None
    if event.cat:
        return _ROLES.get(kind_of_category(event.cat))
    is_host = event.pid == OLD_PROFILER or _LOOKS_LIKE_OPERATOR.match(event.name)
    return EventRole.HOST if is_host else EventRole.UNNAMED


def _decoded(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _text(value: Any) -> str:
    return "" if value is None else str(value)
