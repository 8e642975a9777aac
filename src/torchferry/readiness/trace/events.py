"""The events of a trace that tell of operators, and what these were called with; equal calls added up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from torchferry.operators.native_functions import ArgumentKind, Schema, choose_overload
from torchferry.readiness.model import Argument, OperatorSite, Signature, Special, TensorSpec, Use, Value
from torchferry.traces.columns import INVALID, EventKind, nanoseconds
from torchferry.traces.decoding import ABSENT, NO_ARGS, TraceEvent, decoded_json, text_of
from torchferry.traces.names import DTYPES, flow_device, kind_of_category

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
    """One event, of the host or of a device. Times are nanoseconds."""

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
        return self.start + self.duration


class EventReader:
    """Picks out the events that matter here; what thousands of them have in common is kept once."""

    def __init__(self) -> None:
        self.damaged = 0  # events that lack what every event must have
        self._threads: dict[tuple[Any, Any], tuple[str, str]] = {}
        self._inputs: dict[tuple[bytes, ...], ProfiledInputs] = {}
        self._stacks: dict[bytes, str] = {}

    def read(self, events: Sequence[TraceEvent]) -> Iterator[OperatorEvent]:
        """The events that matter in one piece of the file."""
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
        thread = (event.pid, event.tid)
        if thread not in self._threads:
            self._threads[thread] = (text_of(event.pid), text_of(event.tid))
        made = OperatorEvent(
            role,
            event.name,
            event.cat,
            self._threads[thread],
            start,
            duration,
            link=text_of(event.id if role in _FLOWS else args.correlation),
            external=text_of(args.external_of_2021 if args.external is None else args.external),
        )
        if role is not EventRole.HOST or args is NO_ARGS:
            return made
        types = args.types_of_old if args.types is ABSENT else args.types
        key = (bytes(args.dims), bytes(types), bytes(args.strides), bytes(args.concrete))
        if key not in self._inputs:
            self._inputs[key] = ProfiledInputs(*map(decoded_json, key))
        stack = bytes(args.stack)
        if stack not in self._stacks:
            self._stacks[stack] = text_of(decoded_json(stack))
        return made._replace(
            sequence=args.sequence if isinstance(args.sequence, int) else -1,
            inputs=self._inputs[key],
            stack=self._stacks[stack],
        )


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


_OF_NUMBERS = ("float64", "int64", "bool", "complex128")
_KINDS = {
    "Scalar": ArgumentKind.SCALAR, "Int": ArgumentKind.SCALAR, "Double": ArgumentKind.SCALAR, "Bool": ArgumentKind.SCALAR, "ScalarList": ArgumentKind.SCALARS,
    "TensorList": ArgumentKind.TENSORS, "GenericList": ArgumentKind.LIST, "": ArgumentKind.NOTHING,
}  # fmt: skip


class Signatures:
    """Makes signatures, each once: thousands of calls share one."""

    def __init__(self) -> None:
        self.has_shapes = False
        self.has_open_overloads = False
        self._seen: dict[int, ProfiledInputs] = {}  # kept, so that no other gets its id
        self._schemas: dict[tuple[str, int], Schema | None] = {}
        self._made: dict[tuple[str, int, str], Signature] = {}

    def schema_of(self, operator: str, inputs: ProfiledInputs) -> Schema | None:
        """The overload that was called; None if the arguments leave a choice, or it is not PyTorch's."""
        key = (operator, id(inputs))
        if key not in self._schemas:
            self._seen[id(inputs)] = inputs
            has_types = isinstance(inputs.types, list) and inputs.types
            kinds = list(map(_kind, inputs.types)) if has_types else None
            self._schemas[key] = choose_overload(operator.removeprefix("aten::"), kinds)
        return self._schemas[key]

    def of(self, operator: str, inputs: ProfiledInputs, device: str) -> Signature:
        """The signature of a call whose tensors are on this device."""
        key = (operator, id(inputs), device)
        if key not in self._made:
            self._made[key] = self._signature(operator, inputs, device)
        return self._made[key]

    def _signature(self, operator: str, inputs: ProfiledInputs, device: str) -> Signature:
        schema = self.schema_of(operator, inputs)
        if schema is None and operator.startswith("aten::"):
            self.has_open_overloads = True
        if isinstance(inputs.types, list):
            values = [_value(inputs, index, device) for index in range(len(inputs.types))]
        else:  # old profilers recorded no types: what has a shape is a tensor
            shapes = inputs.dims if isinstance(inputs.dims, list) else []
            values = [_tensor("", dims, None, device) if dims else None for dims in shapes]
        self.has_shapes |= any(value is not None for value in values)
        names = [str(index) for index in range(len(values))]
        if schema and len(schema.arguments) == len(values):
            names = list(schema.arguments)
            values = [_number_if_wrapped(name, value) for name, value in zip(names, values, strict=True)]
        given = [Argument(name, value) for name, value in zip(names, values, strict=True)]
        return Signature(
            f"aten::{schema.name}" if schema else operator,
            tuple(argument for argument in given if argument.value is not None),
        )


def _number_if_wrapped(name: str, value: Value) -> Value:
    """PyTorch makes a tensor of the number in `tensor * 0.5`. It has no dtype of its own: it takes the tensor's."""
    if name != "other" or not isinstance(value, TensorSpec) or value.shape:
        return value
    return Special("number", "") if value.dtype in _OF_NUMBERS else value


def _kind(type_: Any) -> ArgumentKind:
    if not isinstance(type_, str):
        return ArgumentKind.LIST
    return _KINDS.get(type_, ArgumentKind.TENSOR if type_ in DTYPES else ArgumentKind.NOTHING)


def _value(inputs: ProfiledInputs, index: int, device: str) -> Value:
    type_, dims, strides, concrete = (
        _item(column, index) for column in (inputs.types, inputs.dims, inputs.strides, inputs.concrete)
    )
    kind = _kind(type_)
    if kind is ArgumentKind.TENSOR:
        return _tensor(DTYPES[type_], dims, strides, device)
    if isinstance(type_, list) or (kind in (ArgumentKind.TENSORS, ArgumentKind.LIST) and dims):
        return tuple(  # most profilers leave out the dtypes of lists
            _tensor(DTYPES.get(str(_item(type_, at)), ""), shape, _item(strides, at), device)
            for at, shape in enumerate(dims if isinstance(dims, list) else [])
        )
    if isinstance(concrete, str) and concrete:
        return _number(concrete)
    return Special(str(type_), "") if type_ else None


def _tensor(dtype: str, dims: Any, strides: Any, device: str) -> Value:
    shape = _integers(dims)
    if shape is None:
        return Special("tensor", "")
    stride = _integers(strides)
    return TensorSpec(dtype, shape, stride if stride and len(stride) == len(shape) else None, device=device)


def _integers(items: Any) -> tuple[int, ...] | None:
    if not isinstance(items, list) or not all(isinstance(item, int) for item in items):
        return None
    return tuple(items)


def _item(items: Any, index: int) -> Any:
    return items[index] if isinstance(items, list) and index < len(items) else None


def _number(text: str) -> Value:
    """A number, a truth value or a list of them, as C++ prints them; other text stays text."""
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("[") and text.endswith("]"):
        return tuple(_number(item.strip()) for item in text[1:-1].split(",") if item.strip())
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def shapes_of(text: str) -> ProfiledInputs:
    """The shapes that a table prints: `[[8, 3], []]`."""
    try:
        dims: Sequence[Any] = json.loads(text)
    except ValueError:
        return ProfiledInputs()
    return ProfiledInputs(dims=dims) if isinstance(dims, list) else ProfiledInputs()


MOST_SIGNATURES = 50  # of one operator at one site; further ones are counted with the last


@dataclass
class _Row:
    calls: int = 0
    nanoseconds: int = 0
    expanded: bool = False
    varied: bool = False


class Folding:
    """Adds up calls with the same signature from the same site."""

    def __init__(self) -> None:
        self.has_varied = False
        self._rows: dict[tuple[str, OperatorSite, bool], dict[Signature, _Row]] = {}

    def add(
        self, signature: Signature, site: OperatorSite, calls: int, nanoseconds: int, expanded: bool
    ) -> None:
        """Add some calls."""
        rows = self._rows.setdefault((signature.operator, site, expanded), {})
        row = rows.get(signature)
        if row is None:
            if len(rows) < MOST_SIGNATURES:
                row = rows[signature] = _Row(expanded=expanded)
            else:
                row = next(reversed(rows.values()))
                row.varied = self.has_varied = True
        row.calls += calls
        row.nanoseconds += nanoseconds

    def uses(self) -> tuple[Use, ...]:
        """All rows, in the order in which they first came."""
        return tuple(
            Use(signature, site, row.calls, row.nanoseconds / 1e9, row.expanded, row.varied)
            for (_, site, _), rows in self._rows.items()
            for signature, row in rows.items()
        )
