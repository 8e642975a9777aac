"""Writes the values of a case as Python: tensors that are drawn, loaded or listed, and plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torchferry.errors import InputError
from torchferry.ops.cases import dtypes
from torchferry.ops.cases.layout_text import Group, Item, call, on_one_line, quoted, sequence, statement
from torchferry.ops.cases.model import CaseValue, Contents, Draw, TensorInput
from torchferry.ops.model import Special

MOST_INLINE = 16  # elements of a recorded tensor that are written into the file itself
_EVERY = 7  # special values take the place of each seventh element
_DRAWN_DIRECTLY = (*dtypes.FLOATS, "complex64", "complex128")


def lines_for(name: str, tensor: TensorInput, stored: Mapping[str, Any]) -> list[str]:
    """Statements that make one tensor."""
    size = f"({', '.join(map(str, tensor.shape))}{',' if len(tensor.shape) == 1 else ''})"
    memory = size if tensor.is_plain else f"({tensor.span},)"
    made = _made(tensor, memory, stored)
    if tensor.is_plain:
        return [statement(f"{name} = ", made), *_special(name, tensor.contents, ".view(-1)")]
    lines = [statement("memory = ", made), *_special("memory", tensor.contents, "")]
    stride = f"({', '.join(map(str, _stride(tensor)))}{',' if len(tensor.shape) == 1 else ''})"
    offset = [str(tensor.offset)] if tensor.offset else []
    return [*lines, statement(f"{name} = ", call("memory.as_strided", size, stride, *offset))]


def is_inline(tensor: TensorInput) -> bool:
    """Whether recorded contents are written into the file itself."""
    return tensor.contents.draw is Draw.STORED and tensor.span <= MOST_INLINE


def written(value: CaseValue, tensors: Mapping[int, str]) -> Item:
    """A value as Python; tensors by the names of their variables, found by identity."""
    if isinstance(value, TensorInput):
        return tensors[id(value)]
    if isinstance(value, tuple):
        return sequence([written(item, tensors) for item in value])
    if isinstance(value, Special):
        return _special_value(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return _number(value) if isinstance(value, float) else repr(value)


def _stride(tensor: TensorInput) -> tuple[int, ...]:
    from torchferry.ops.cases.model import contiguous

    return contiguous(tensor.shape) if tensor.stride is None else tensor.stride


def _made(tensor: TensorInput, size: str, stored: Mapping[str, Any]) -> Group:
    contents, dtype = tensor.contents, f"torch.{tensor.dtype}"
    convert = f".to({dtype})"
    if contents.draw is Draw.STORED:
        return _recorded(tensor, stored, convert)
    if contents.draw is Draw.FULL:
        return call("torch.full", size, _full_value(tensor), f"dtype={dtype}")
    if contents.draw is Draw.ARANGE:
        return call("torch.arange", str(tensor.span), tail=f".reshape({size}){convert}")
    generator = "generator=random"
    if contents.draw is Draw.INTS:
        bounds = (str(int(contents.low)), str(int(contents.high)))
        return call(
            "torch.randint", *bounds, size, generator, tail="" if tensor.dtype == "int64" else convert
        )
    if contents.draw is Draw.UNIFORM:
        bounds = (_number(contents.low), _number(contents.high))
        drawn = on_one_line(call(f"torch.empty({size}).uniform_", *bounds, generator))
        return Group(drawn, (), "", "" if tensor.dtype == "float32" else convert)
    if tensor.dtype in _DRAWN_DIRECTLY:
        return call("torch.randn", size, generator, f"dtype={dtype}")
    return call("torch.randn", size, generator, tail=" > 0" if tensor.dtype == "bool" else convert)


def _full_value(tensor: TensorInput) -> str:
    value = tensor.contents.low
    if tensor.dtype == "bool":
        return str(bool(value))
    is_whole = not dtypes.is_floating(tensor.dtype) and math.isfinite(value)
    return str(int(value)) if is_whole else _number(value)


def _recorded(tensor: TensorInput, stored: Mapping[str, Any], convert: str) -> Group:
    shape = "" if not tensor.is_plain or len(tensor.shape) == 1 else f".reshape({_size(tensor.shape)})"
    if not is_inline(tensor):
        return call("stored", quoted(tensor.contents.key), tail=shape)
    numbers = stored[tensor.contents.key].tolist()
    items = [str(written(number, {})) for number in numbers]
    plain = tensor.dtype not in dtypes.SMALL_FLOATS and tensor.dtype != "complex32"
    dtype = (f"dtype=torch.{tensor.dtype}",) if plain else ()
    return call("torch.tensor", sequence(items), *dtype, tail=("" if plain else convert) + shape)


def _size(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _special(name: str, contents: Contents, view: str) -> list[str]:
    return [
        statement(f"{name}{view}[{start}::{_EVERY}] = ", _number(float(value)))
        for start, value in enumerate(contents.special)
    ]


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _special_value(value: Special) -> str:
    if value.kind in ("dtype", "memory_format", "layout"):
        return f"torch.{value.text.removeprefix('torch.')}"
    if value.kind == "device":
        return 'torch.device("cpu")'
    if value.kind == "complex":
        return str(written(complex(value.text), {}))
    if value.kind == "generator":
        return "None"
    raise InputError(f"an argument is a {value.kind}, which a case can't make; choose another call")
