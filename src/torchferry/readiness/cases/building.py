"""Puts a case together from what a user asks for: arguments as written, of a record, or of a capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from torchferry.errors import InputError, not_readable
from torchferry.observe.operators import find_overload
from torchferry.readiness.capture_json import load
from torchferry.readiness.cases.contents import check_fits, filled
from torchferry.readiness.cases.model import (
    Callee,
    CalleeKind,
    Case,
    CaseValue,
    Draw,
    TensorContents,
    TensorInput,
    contiguous,
)
from torchferry.readiness.cases.notation import described, parse_init, parse_inputs
from torchferry.readiness.cases.resolving import arranged, resolve
from torchferry.readiness.model import TensorSpec, Use, Value
from torchferry.text import NOTHING, Text, then

_HDF5 = b"\x89HDF\r\n\x1a\n"


def uses(path: Path, operator: str = "", site: str = "") -> list[Use]:
    """The calls of an operator in a capture, of all if none is named; `site` is part of a line or a module's path."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise not_readable(path, str(error)) from None
    wanted = operator.removeprefix("torch.ops.").replace("aten.", "aten::", 1) if operator else ""
    wanted = wanted if not wanted or "::" in wanted else f"aten::{wanted}"
    return [
        use
        for use in load(text, str(path)).uses
        if (not wanted or wanted in (use.operator, use.operator.partition(".")[0]))
        and (not site or site in use.site.place or site in use.site.module)
    ]


def arguments(use: Use) -> dict[str, CaseValue]:
    """What the operator was given, by name; contents are made up."""
    return {argument.name: _value(argument.value) for argument in use.signature.arguments}


def _value(value: Value) -> CaseValue:
    if not isinstance(value, TensorSpec):
        return tuple(map(_value, value)) if isinstance(value, tuple) else value
    if value.layout != "strided":
        raise InputError(
            Text(
                f"a tensor with layout {value.layout} can't be created for a case; choose another call",
                f"无法为用例创建布局为 {value.layout} 的张量；请选择其他调用",
            )
        )
    stride = None if value.stride == contiguous(value.shape) or not value.elements else value.stride
    return TensorInput(value.dtype, value.shape, TensorContents(Draw.DEFAULT), stride)


@dataclass(frozen=True)
class RecordedCall:
    """One call of a record."""

    operator: str  # as the record names it
    number: int
    index: int  # among the calls of the record
    exact: str = ""  # the operator with its overload, if the record says it


@dataclass(frozen=True)
class RecordedInputs:
    """What a call was given, by name, in the order of the record."""

    values: dict[str, CaseValue]
    stored: dict[str, torch.Tensor]


class RecordReader(Protocol):
    """Reads calls of records; who knows their files hands it in."""

    def calls(self, path: Path, operator: str = "") -> list[RecordedCall]:
        """The calls of an operator, of all if none is named; in the order of their numbers."""

    def read(self, path: Path, call: RecordedCall, *, contents: bool = True) -> RecordedInputs:
        """The inputs of one call; their shapes alone without contents."""


@dataclass(frozen=True)
class CaseRequest:
    """What a case is to be made of."""

    operator: str
    inputs: tuple[str, ...] = ()  # in the notation of the command line
    source: Path | None = None  # a record or a capture
    call: int | None = None  # its number in a record, its place in a capture; None: the first
    site: str = ""  # part of a line or of a module's path
    init: str = ""
    seed: int = 0
    modules: tuple[str, ...] = ()


def build(request: CaseRequest, records: RecordReader | None = None) -> Case:
    """The case, with contents for every tensor."""
    given = parse_inputs(request.inputs)
    if request.source is not None:
        return _from_source(request, given, records)
    args = tuple(value for name, value in given if not name)
    kwargs = tuple((name, value) for name, value in given if name)
    callee = resolve(request.operator, args, kwargs, request.modules)
    init = tuple(parse_init(request.init))
    if init and callee.kind is not CalleeKind.MODULE:
        raise InputError(
            Text(
                f"{request.operator}: not a module; --init is for the arguments of a module's class",
                f"{request.operator}：不是模块；--init 用于模块类的参数",
            )
        )
    return _whole(Case(callee, args, kwargs, init, request.seed))


def _whole(case: Case) -> Case:
    check_fits(case.tensors)
    names: tuple[str, ...] = ()
    if case.callee.kind is CalleeKind.OPERATOR:
        schema = _schema(case.callee)
        names = tuple(argument.name for argument in schema.arguments if not argument.kwarg_only)
    return filled(case, names)


def listed(source: Path, operator: str, site: str, records: RecordReader | None = None) -> list[str]:
    """A line for each call of a source, numbered as --call counts; those of a record as all commands number them."""
    if records is not None and _is_record(source):
        return [
            f"{call.number:>4}  {call.operator}({_described(records.read(source, call, contents=False).values)})"
            for call in records.calls(source, operator)
        ]
    lines = [
        f"{use.operator}({_described(arguments(use))}) x{use.calls} "
        f"{use.site.phase.value} {use.site.module} {use.site.place}".rstrip()
        for use in uses(source, operator, site)
    ]
    return [f"{number:>4}  {line}" for number, line in enumerate(lines, 1)]


def _from_source(
    request: CaseRequest, given: list[tuple[str, CaseValue]], records: RecordReader | None
) -> Case:
    if any(not name for name, _ in given):
        raise InputError(
            Text(
                "with --from, --input changes arguments by name, as in --input dim=1",
                "与 --from 一起使用时，--input 按名称修改参数，例如 --input dim=1",
            )
        )
    if request.init:
        raise InputError(
            Text(
                "--init is for the arguments of a module's class, but --from names an operator's call",
                "--init 用于模块类的参数，而 --from 指定的是算子调用",
            )
        )
    assert request.source is not None
    stored: dict[str, torch.Tensor] = {}
    if records is not None and _is_record(request.source):
        calls = records.calls(request.source, request.operator)
        known = sorted({call.operator for call in records.calls(request.source)})
        call = _chosen({call.number: call for call in reversed(calls)}, request, known)
        inputs = records.read(request.source, call)
        name, values, stored = call.exact or request.operator, inputs.values, inputs.stored
    else:
        wanted = uses(request.source, request.operator, request.site)
        known = sorted({use.operator for use in uses(request.source)})
        use = _chosen(dict(enumerate(wanted, 1)), request, known)
        name, values = use.operator, arguments(use)
    values.update(given)
    callee = resolve(name, (), tuple(values.items()), request.modules)
    if callee.kind is not CalleeKind.OPERATOR:
        first = [values.pop(name) for name in ("self", "input") if name in values][:1]
        return _whole(Case(callee, tuple(first), tuple(values.items()), (), request.seed, stored))
    args, kwargs = arranged(_schema(callee), values)
    return _whole(Case(callee, args, kwargs, (), request.seed, stored))


def _chosen(calls: dict[int, Any], request: CaseRequest, known: list[str]) -> Any:
    if not calls:
        where = f" ({request.site})" if request.site else ""
        some = f"{', '.join(known[:8])}{' ...' if len(known) > 8 else ''}"
        none = Text(
            f"{request.source}: no call of {request.operator}{where}",
            f"{request.source}：没有 {request.operator} 的调用{where}",
        )
        raise InputError(then(none, Text(f"it has {some}", f"其中有 {some}") if known else NOTHING))
    if request.call is None:
        return calls[min(calls)]
    if request.call not in calls:
        raise InputError(
            Text(
                f"{request.source}: has {len(calls)} calls of {request.operator}, none with the number "
                f"{request.call}; --list shows them",
                f"{request.source}：有 {len(calls)} 次 {request.operator} 调用，没有编号 {request.call}；--list "
                "可列出",
            )
        )
    return calls[request.call]


def _is_record(source: Path) -> bool:
    try:
        with source.open("rb") as file:
            return file.read(len(_HDF5)) == _HDF5 or source.suffix in (".h5", ".hdf5")
    except OSError as error:
        raise not_readable(source, error) from None


def _described(values: dict[str, CaseValue]) -> str:
    return ", ".join(f"{name}={described(value)}" for name, value in values.items())


def _schema(operator: Callee) -> Any:
    overload = find_overload(operator.name)
    assert overload is not None
    return overload._schema
