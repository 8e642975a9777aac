"""What operators of a trace were called with: overload, tensors, numbers; equal calls added up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchferry.operators.schemas import ArgumentKind, Schema, choose_overload
from torchferry.readiness.model import Argument, OperatorSite, Signature, Special, TensorSpec, Use, Value
from torchferry.readiness.trace.events import ProfiledInputs
from torchferry.traces.names import DTYPES

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
            kinds = _kinds(inputs)
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
        values = _values(inputs, device)
        self.has_shapes |= any(value is not None for value in values)
        names = [str(index) for index in range(len(values))]
        if schema and len(schema.arguments) == len(values):
            names = list(schema.arguments)
            values = [_number_if_wrapped(name, value) for name, value in zip(names, values, strict=True)]
        return Signature(
            f"aten::{schema.name}" if schema else operator,
            tuple(
                Argument(name, value) for name, value in zip(names, values, strict=True) if value is not None
            ),
        )


def _number_if_wrapped(name: str, value: Value) -> Value:
    """PyTorch makes a tensor of the number in `tensor * 0.5`. It has no dtype of its own: it takes the tensor's."""
    is_wrapped = (
        name == "other" and isinstance(value, TensorSpec) and not value.shape and value.dtype in _OF_NUMBERS
    )
    return Special("number", "") if is_wrapped else value


def _kinds(inputs: ProfiledInputs) -> list[ArgumentKind] | None:
    if not isinstance(inputs.types, list) or not inputs.types:
        return None
    return [_kind(type_) for type_ in inputs.types]


def _kind(type_: Any) -> ArgumentKind:
    return (
        _KINDS.get(type_, ArgumentKind.TENSOR if type_ in DTYPES else ArgumentKind.NOTHING)
        if isinstance(type_, str)
        else ArgumentKind.LIST
    )


def _values(inputs: ProfiledInputs, device: str) -> list[Value]:
    if not isinstance(inputs.types, list):
        return _shapes_alone(inputs, device)
    return [
        _value(
            type_,
            _item(inputs.dims, index),
            _item(inputs.strides, index),
            _item(inputs.concrete, index),
            device,
        )
        for index, type_ in enumerate(inputs.types)
    ]


def _shapes_alone(inputs: ProfiledInputs, device: str) -> list[Value]:
    """Old profilers recorded no types: what has a shape is a tensor."""
    if not isinstance(inputs.dims, list):
        return []
    return [_tensor("", dims, None, device) if dims else None for dims in inputs.dims]


def _value(type_: Any, dims: Any, strides: Any, concrete: Any, device: str) -> Value:
    kind = _kind(type_)
    if kind is ArgumentKind.TENSOR:
        return _tensor(DTYPES[type_], dims, strides, device)
    if isinstance(type_, list) or (kind in (ArgumentKind.TENSORS, ArgumentKind.LIST) and dims):
        return _tensors(type_, dims, strides, device)
    if isinstance(concrete, str) and concrete:
        return _number(concrete)
    return Special(str(type_), "") if type_ else None


def _tensors(type_: Any, dims: Any, strides: Any, device: str) -> Value:
    """A list of tensors. Most profilers leave out the dtypes."""
    shapes = dims if isinstance(dims, list) else []
    return tuple(
        _tensor(DTYPES.get(str(_item(type_, index)), ""), shape, _item(strides, index), device)
        for index, shape in enumerate(shapes)
    )


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


# Adds up calls with the same signature from the same site.

MOST_SIGNATURES = 50  # of one operator at one site; further ones are counted with the last


@dataclass
class _Row:
    calls: int = 0
    nanoseconds: int = 0
    expanded: bool = False
    varied: bool = False


class Folding:
    """The rows so far."""

    def __init__(self) -> None:
        self.has_varied = False
        self._rows: dict[tuple[str, OperatorSite, bool], dict[Signature, _Row]] = {}

    def add(
        self, signature: Signature, site: OperatorSite, calls: int, nanoseconds: int, expanded: bool
    ) -> None:
        """Some calls."""
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
        """In the order in which they first came."""
        return tuple(
            Use(signature, site, row.calls, row.nanoseconds / 1e9, row.expanded, row.varied)
            for (_, site, _), rows in self._rows.items()
            for signature, row in rows.items()
        )
