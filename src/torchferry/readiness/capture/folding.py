"""Folds calls: the same operator with the same arguments from the same place is one row, however often it comes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.readiness.model import Argument, OperatorSite, Signature, Special, TensorSpec, Use, Value

# What an operator was called with, as small keys that can be compared, and from those to the records.

Key = Hashable

_TENSOR = "tensor"
_LIST = "list"
_SPECIAL = "special"
_KINDS: dict[type, str] = {
    torch.dtype: "dtype",
    torch.device: "device",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
    torch.Generator: "generator",
    complex: "complex",
}
_WITH_NUMBERS = (torch.Tensor, torch.nn.Parameter)  # the sizes of others may be symbols, which are no keys
_PREFIXED = frozenset({"dtype", "layout", "memory_format"})


def key_of(value: Any) -> Key:
    """A key that is equal for equal values; of tensors only their outside counts."""
    if isinstance(value, torch.Tensor):
        return tensor_key(value)
    kind = type(value)
    if value is None or kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int or kind is bool or kind is float:
        return (kind, value if value == value else "nan")  # 1, True and 1.0 are equal, and nan is not
    if isinstance(value, (list, tuple)):
        return (_LIST, *map(key_of, value))
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return key_of(_plain_number(value))
    name = _KINDS.get(kind, kind.__name__)
    return (_SPECIAL, name, _text(name, value))


def tensor_key(tensor: torch.Tensor) -> Key:
    """dtype, shape, strides, layout and the type of the device."""
    try:
        shape = tuple(tensor.shape)
        stride = tensor.stride() if tensor.layout is torch.strided else None
        if type(tensor) not in _WITH_NUMBERS:
            shape, stride = tuple(map(_plain_number, shape)), stride and tuple(map(_plain_number, stride))
        return (_TENSOR, tensor.dtype, shape, stride, tensor.layout, tensor.device.type)
    except RuntimeError:  # nested and wrapped tensors that have no such thing
        return (_TENSOR, tensor.dtype, (), None, tensor.layout, tensor.device.type)


def value_of(key: Any) -> Value:
    """The record that a key stands for."""
    if key is None or isinstance(key, str):
        return key
    kind = key[0]
    if kind is _TENSOR:
        dtype, shape, stride, layout, device = key[1:]
        return TensorSpec(_short(dtype), shape, stride, _short(layout), device)
    if kind is _LIST:
        return tuple(map(value_of, key[1:]))
    if kind is _SPECIAL:
        return Special(key[1], key[2])
    return float("nan") if key[1] == "nan" else key[1]


def _text(kind: str, value: Any) -> str:
    if kind == "generator":
        return str(value.device)
    if kind in _PREFIXED:
        return _short(value)
    if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):
        return f"{value.nbytes()} bytes on {value.device.type}"  # its own text has every byte, fetched one by one
    text = str(value)
    return "" if " object at 0x" in text else text  # the same in every run


def _short(named: Any) -> str:
    return str(named).removeprefix("torch.").lstrip("_")


def _plain_number(value: Any) -> Any:
    """The number behind a symbol; -1 where there is none."""
    node = getattr(value, "node", None)
    if node is None:
        return value
    try:
        hint = node.hint
    except Exception:  # each kind of symbol has its own way to say that it stands for no number yet
        hint = None
    return hint if isinstance(hint, (int, float, bool)) else -1


def tensors_among(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors of arguments or results, those of lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_among(value)


# A loop over sequences of a thousand lengths calls each operator with a thousand shapes: these are kept of them.
MOST_SIGNATURES = 200


@dataclass
class FoldedUse:
    """What has been added up for one signature at one site."""

    expanded: bool
    results: tuple[Key, ...] | None = None  # until the first call has returned
    calls: int = 0
    nanoseconds: int = 0
    quickest: int | None = None  # nanoseconds
    varied: bool = False

    def add_time(self, nanoseconds: int) -> None:
        """Count the time of one call."""
        self.nanoseconds += nanoseconds
        self.quickest = nanoseconds if self.quickest is None else min(self.quickest, nanoseconds)

    @property
    def seconds(self) -> float:
        """The time of all calls. The first one may pay for what the others find made: the quickest counts for each of them,
        unless they differ."""
        steady = self.nanoseconds if self.varied else (self.quickest or 0) * self.calls
        return steady / 1e9


@dataclass(frozen=True)
class PastCall:
    """A call that has been counted, and what is needed to count it elsewhere."""

    func: Any
    inside: str
    arguments: Key
    row: FoldedUse
    nanoseconds: int


class Folded:
    """The calls of a process, added up."""

    def __init__(self) -> None:
        # operator and site -> arguments -> row. Two levels, so that the shapes at one site can be counted.
        self._rows: dict[tuple[Any, OperatorSite], dict[Key, FoldedUse]] = {}
        self._sites: dict[OperatorSite, OperatorSite] = {}

    def row(self, func: Any, site: OperatorSite, arguments: Key, expanded: bool) -> FoldedUse:
        """The row for a call that is about to be made."""
        site = self._sites.setdefault(site, site)
        rows = self._rows.setdefault((func, site), {})
        row = rows.get(arguments)
        if row is None:
            if len(rows) < MOST_SIGNATURES:
                row = rows[arguments] = FoldedUse(expanded)
            else:
                row = next(reversed(rows.values()))
                row.varied = True
        row.calls += 1
        return row

    def move(self, call: PastCall, site: OperatorSite) -> None:
        """Count a call elsewhere than where it was counted."""
        call.row.calls -= 1
        call.row.nanoseconds -= call.nanoseconds
        row = self.row(call.func, site, call.arguments, call.row.expanded)
        row.add_time(call.nanoseconds)
        row.results = row.results or call.row.results

    def uses(self) -> tuple[Use, ...]:
        """All rows as records, in the order in which they first came."""
        return tuple(
            Use(
                signature=_signature(func, arguments, row.results or ()),
                site=site,
                calls=row.calls,
                seconds=row.seconds,
                expanded=row.expanded,
                varied=row.varied,
            )
            for (func, site), rows in self._rows.items()
            for arguments, row in rows.items()
            if row.calls
        )


def _signature(func: Any, arguments: Any, results: Any) -> Signature:
    described = func._schema.arguments
    positional, named = arguments
    given = [Argument(described[index].name, value_of(key)) for index, key in enumerate(positional)]
    given += [Argument(name, value_of(key)) for name, key in named]
    return Signature(func.name(), tuple(given), tuple(map(value_of, results)))
