"""Turns a call that a capture has seen into the arguments of a case; contents are made up. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from torchferry.errors import InputError
from torchferry.ops.capture_json import load
from torchferry.ops.cases.model import CaseValue, Contents, Draw, TensorInput, contiguous
from torchferry.ops.model import TensorSpec, Use, Value


def uses(path: Path, operator: str = "", site: str = "") -> list[Use]:
    """The calls of an operator in a capture, of all if none is named; `site` is part of a line or a module's path."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read: {error}") from None
    wanted = operator.removeprefix("torch.ops.").replace("aten.", "aten::", 1) if operator else ""
    wanted = wanted if not wanted or "::" in wanted else f"aten::{wanted}"
    return [
        use
        for use in load(text, str(path)).uses
        if (not wanted or wanted in (use.operator, use.operator.partition(".")[0]))
        and (not site or site in use.site.place or site in use.site.module)
    ]


def arguments(use: Use) -> dict[str, CaseValue]:
    """What the operator was given, by name."""
    return {argument.name: _value(argument.value) for argument in use.signature.arguments}


def _value(value: Value) -> CaseValue:
    if isinstance(value, TensorSpec):
        return _tensor(value)
    return tuple(map(_value, value)) if isinstance(value, tuple) else value


def _tensor(spec: TensorSpec) -> TensorInput:
    if spec.layout != "strided":
        raise InputError(f"a tensor of layout {spec.layout} can't be made for a case; choose another call")
    stride = None if spec.stride == contiguous(spec.shape) or not spec.elements else spec.stride
    return TensorInput(spec.dtype, spec.shape, Contents(Draw.DEFAULT), stride)
