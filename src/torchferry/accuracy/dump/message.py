"""The content of a dump file: the length of a header, the header (Protocol Buffers), the bytes of the tensors.

The header is a `DumpData`: version = 1, dump_time = 2, output = 3, input = 4, op_name = 6. An input has data_type = 1,
format = 2, shape = 3, size = 5, original_shape = 6; an output the same, with size = 6 and original_shape = 7. Inputs'
bytes come first. Runtimes of real devices write the same. Older ones write the header alone, with the bytes of each
tensor in it (data = 4). Imports no torch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_VERSION = "2.0"
_PLAIN_FORMAT = 2  # ND: no layout of a vendor's own
_DATA_TYPES = {
    "float32": 1, "float16": 2, "int8": 3, "uint8": 4, "int16": 5, "uint16": 6, "int32": 7, "int64": 8, "uint32": 9,
    "uint64": 10, "bool": 11, "float64": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
}  # fmt: skip
_VARINT, _BYTES = 0, 2
_DATA, _INPUT_SIZE, _OUTPUT_SIZE = 4, 5, 6
_OUTPUTS, _INPUTS, _NAME = 3, 4, 6  # fields of the head
_FIXED = {1: 8, 5: 4}  # bytes of other kinds of fields, which are passed over
_LONGEST_HEAD = 1 << 24
_NAMES = {number: name for name, number in _DATA_TYPES.items()}


@dataclass(frozen=True)
class DumpedTensor:
    """One tensor of a call, in the order of its indices."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def dump_file(
    name: str, microseconds: int, inputs: Sequence[DumpedTensor], outputs: Sequence[DumpedTensor]
) -> bytes:
    """The bytes of a dump file."""
    fields = [_bytes(1, _VERSION.encode()), _number(2, microseconds)]
    fields += [_bytes(_OUTPUTS, _described(tensor, _OUTPUT_SIZE)) for tensor in outputs]
    fields += [_bytes(_INPUTS, _described(tensor, _INPUT_SIZE)) for tensor in inputs]
    header = b"".join([*fields, _bytes(_NAME, name.encode())])
    data = [tensor.data for tensor in (*inputs, *outputs)]
    return b"".join([struct.pack("<Q", len(header)), header, *data])


@dataclass(frozen=True)
class Described:
    """A tensor of a file: what it is, and where its bytes lie."""

    dtype: str  # "": one that is not known here
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class DumpHead:
    """What a dump file says of its call."""

    name: str
    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]


def read_head(data: memoryview) -> DumpHead:
    """The head of a file; raises ValueError where it is none."""
    if len(data) < 8:
        raise ValueError("it is too short")
    (length,) = struct.unpack_from("<Q", data)
    if not 0 < length <= min(len(data) - 8, _LONGEST_HEAD):
        return _head(_fields(data), None)
    place = 8 + length
    head = _head(_fields(data[8:place], 8), place)
    if sum(tensor.nbytes for tensor in (*head.inputs, *head.outputs)) > len(data) - place:
        raise ValueError("its tensors are not in the file")
    return head


def _head(fields: Sequence[_Field], place: int | None) -> DumpHead:
    """`place`: where the bytes of the first tensor lie; None: each tensor's lie in its own description."""
    sides = []
    for field, size_field in ((_INPUTS, _INPUT_SIZE), (_OUTPUTS, _OUTPUT_SIZE)):
        tensors = []
        for each in fields:
            if each.number == field and isinstance(each.value, memoryview):
                tensor = _tensor(each.value, each.place, size_field, place)
                place = None if place is None else place + tensor.nbytes
                tensors.append(tensor)
        sides.append(tuple(tensors))
    if not any(sides):
        raise ValueError("it has no tensors")
    names = (each.value for each in fields if each.number == _NAME and isinstance(each.value, memoryview))
    return DumpHead(bytes(next(names, b"")).decode("utf-8", "replace"), *sides)


def _tensor(message: memoryview, start: int, size_field: int, place: int | None) -> Described:
    fields = {each.number: each for each in _fields(message, start)}
    values = {number: each.value for number, each in fields.items()}
    shape, size, kind = values.get(3, memoryview(b"")), values.get(size_field, 0), values.get(1, 0)
    if place is None:
        data = fields.get(_DATA)
        if data is None or not isinstance(data.value, memoryview):
            raise ValueError("a tensor has no contents")
        place, size = data.place, len(data.value)
    if not isinstance(shape, memoryview) or not isinstance(size, int):
        raise ValueError("a tensor is not described")
    return Described(_NAMES.get(kind, "") if isinstance(kind, int) else "", _dims(shape), place, size)


def _dims(message: memoryview) -> tuple[int, ...]:
    """Numbers one by one, or packed into one field."""
    found: list[int] = []
    for each in _fields(message):
        if each.number == 1 and isinstance(each.value, int):
            found.append(each.value)
        elif each.number == 1 and isinstance(each.value, memoryview):
            place = 0
            while place < len(each.value):
                number, place = _read_varint(each.value, place)
                found.append(number)
    return tuple(found)


class _Field(NamedTuple):
    number: int
    value: int | memoryview
    place: int  # of the value in the file


def _fields(message: memoryview, start: int = 0) -> list[_Field]:
    """Numbers and bytes of a message of Protocol Buffers that begins there in the file."""
    found: list[_Field] = []
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            number, place = _read_varint(message, place)
            found.append(_Field(key >> 3, number, start + place))
            continue
        if kind == _BYTES:
            length, place = _read_varint(message, place)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise ValueError("it is no message")
        if place + length > len(message):
            raise ValueError("it is cut off")
        if kind == _BYTES:
            found.append(_Field(key >> 3, message[place : place + length], start + place))
        place += length
    return found


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("it is cut off")
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("it is no number")


def _described(tensor: DumpedTensor, size_field: int) -> bytes:
    shape = b"".join(_number(1, length) for length in tensor.shape)
    kind, size = _DATA_TYPES.get(tensor.dtype, 0), _number(size_field, len(tensor.data))
    return (
        _number(1, kind) + _number(2, _PLAIN_FORMAT) + _bytes(3, shape) + size + _bytes(size_field + 1, shape)
    )


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
