"""Reads one call from an HDF5 record of operators: /<operator>/<number>/input/<argument>.

The layout is that of the vendors' `torch.utils.dumper`. Each argument is a dataset with an attribute `Type`: 0 is a tensor,
the others are scalars, lists of integers, dtypes and memory formats. A tensor's `DataType` counts as ONNX does; half
precision lies in the file as single precision. `Stride` tells how the tensor lay in its memory: if it was dense, the
dataset holds its elements in the order of the memory, otherwise in the order of the indices. A list of tensors is a
group: input/tensors/tensors_0, tensors_1 ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchferry.errors import InputError
from torchferry.ops.cases import dtypes
from torchferry.ops.cases.memory import check_fits, laid, overlaps
from torchferry.ops.cases.model import CaseValue, Contents, Draw, TensorInput, contiguous
from torchferry.ops.model import Special

_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
}  # fmt: skip
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_TENSOR, _BOOL, _DTYPE, _MEMORY_FORMAT, _OPTIONS = 0, 4, 14, 17, 18


@dataclass(frozen=True)
class Call:
    """One recorded call."""

    operator: str  # as the record names it
    number: int
    path: str  # of its group in the file


@dataclass(frozen=True)
class Inputs:
    """What a call was given, by name, in the order of the record."""

    values: dict[str, CaseValue]
    stored: dict[str, torch.Tensor]


def calls(path: Path, operator: str = "") -> list[Call]:
    """The calls of an operator in a record, of all operators if none is named; in the order of their numbers."""
    with _opened(path) as file:
        found = [
            Call(name, int(number), f"/{name}/{number}")
            for name, group in file.items()
            if hasattr(group, "items")
            for number in group
            if number.isdecimal() and hasattr(group[number], "items")
        ]
    wanted = [call for call in found if not operator or _is_called(call.operator, operator)]
    return sorted(wanted, key=lambda call: (call.number, call.operator))


def read(path: Path, call: Call) -> Inputs:
    """The inputs of one call."""
    stored: dict[str, torch.Tensor] = {}
    with _opened(path) as file:
        group = file[call.path].get("input", {})
        if not hasattr(group, "items"):
            raise InputError(f"{path}: {call.path}/input is no group of arguments")
        values = {name: _value(item, name, stored, f"{path}: {call.path}") for name, item in group.items()}
    return Inputs(values, stored)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import h5py
    except ImportError:
        raise InputError(f"{path}: HDF5 records need h5py; pip install 'torchferry[record]'") from None
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        reason = str(error).partition("(")[2].rstrip(")") or error
        raise InputError(f"{path}: can't be read as an HDF5 record: {reason}") from None
    with file:
        try:
            yield file
        except (OSError, RuntimeError, KeyError) as error:  # what h5py raises where the file is damaged
            raise InputError(f"{path}: can't be read as an HDF5 record: {error}") from None


def _is_called(recorded: str, wanted: str) -> bool:
    """Whether a record's name is what a user means; an overload that is not said may be any."""
    ours, theirs = _plain(wanted), _plain(recorded)
    return theirs == ours or theirs.partition(".")[0] == ours or (theirs == ours.partition(".")[0])


def _plain(name: str) -> str:
    bare = re.sub(r"^(torch\.ops\.)?(aten|torch|Tensor)(::|\.)", "", name.replace("torch.nn.functional.", ""))
    return bare.removesuffix(".default")


def _value(item: Any, name: str, stored: dict[str, torch.Tensor], place: str) -> CaseValue:
    if item is None:
        raise InputError(f"{place}: `{name}` is a link to nothing")
    if hasattr(item, "items"):
        members = sorted(
            item.items(), key=lambda pair: int(re.sub(r"\D", "", pair[0].rpartition("_")[2]) or 0)
        )
        return tuple(_value(member, key, stored, place) for key, member in members)
    (kind,) = _numbers(item, "Type", name, place, 1) or (_TENSOR,)
    if kind == _TENSOR:
        return _tensor(item, name, stored, place)
    return _plain_value(item, kind, place)


def _plain_value(item: Any, kind: int, place: str) -> CaseValue:
    if item.shape is None:  # an empty dataset
        return None
    value = item[()]
    if kind == _DTYPE:
        return Special("dtype", _dtype(int(value), place))
    if kind == _MEMORY_FORMAT:
        return Special("memory_format", _MEMORY_FORMATS[int(value) % len(_MEMORY_FORMATS)])
    if kind == _OPTIONS:
        return Special("dtype", _tensor_dtype(item, "", place))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(plain, list):
        return tuple(plain)
    is_truth = kind == _BOOL or str(item.dtype) in ("bool", "int8")
    found: CaseValue = bool(plain) if is_truth else plain
    return found


def _tensor(item: Any, name: str, stored: dict[str, torch.Tensor], place: str) -> CaseValue:
    if item.shape is None:
        return None
    dtype = _tensor_dtype(item, name, place)
    shape = tuple(int(size) for size in item.shape)
    stride = _numbers(item, "Stride", name, place) if "Stride" in item.attrs else contiguous(shape)
    if len(stride) != len(shape) or min(stride, default=0) < 0:
        raise InputError(f"{place}: the strides {stride} of `{name}` do not fit its shape {shape}")
    tensor = TensorInput(dtype, shape, Contents(Draw.STORED, key=_free_key(name, stored)), stride)
    check_fits([tensor])
    flat = _flat(item, dtype)
    if tensor.elements == 0 or stride == contiguous(shape) or overlaps(tensor):
        tensor = replace(tensor, stride=None)
    elif tensor.span != tensor.elements:  # not dense: the elements lie in the file by their indices
        flat = laid(flat.reshape(shape), tensor)
    stored[tensor.contents.key] = flat
    return tensor


def _free_key(name: str, stored: dict[str, torch.Tensor]) -> str:
    key, count = name, 1
    while key in stored:
        count += 1
        key = f"{name}#{count}"
    return key


def _flat(item: Any, dtype: str) -> torch.Tensor:
    array = item[()].reshape(-1).astype(item.dtype.newbyteorder("="))
    target: torch.dtype = getattr(torch, dtype)
    if dtype == "bfloat16" and array.dtype.kind in "iu" and array.dtype.itemsize == 2:  # its bits
        return torch.from_numpy(array.astype("int16")).view(target)
    if dtype == "uint8" and array.dtype.itemsize == 1:  # the dumper writes it as signed
        array = array.view("uint8")
    return torch.from_numpy(array.copy()).to(target)


def _tensor_dtype(item: Any, name: str, place: str) -> str:
    """What the attribute says, by number or by name; without it that of the dataset."""
    said = item.attrs.get("DataType")
    own = item.dtype.newbyteorder("=").name
    word = own if said is None else said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if said is not None and not dtypes.dtype_name(word):
        return _dtype(_numbers(item, "DataType", name, place, 1)[0], place)
    if not dtypes.dtype_name(word) or not (dtypes.dtype_name(own) or item.dtype.kind in "biufc"):
        raise InputError(f"{place}: `{name}` holds {own}, which no tensor can hold")
    return dtypes.dtype_name(word)


def _numbers(item: Any, attribute: str, name: str, place: str, count: int | None = None) -> tuple[int, ...]:
    """The whole numbers of an attribute: a number, several, or a text with them; none if it is not there."""
    value = item.attrs.get(attribute, ())
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        value = text.strip("()[] ").replace(",", " ").split()
    try:
        found = tuple(int(each) for each in (value if isinstance(value, (list, tuple)) else (value,)))
    except (TypeError, ValueError):
        found = None
    if found is None or (count is not None and len(found) != count and attribute in item.attrs):
        raise InputError(f"{place}: the attribute {attribute} of `{name}` is {value!r}, which is no number")
    return found


def _dtype(number: int, place: str) -> str:
    if number not in _DTYPES:
        raise InputError(f"{place}: DataType {number} is not known; known are {', '.join(map(str, _DTYPES))}")
    return _DTYPES[number]
