"""A call as HDF5 objects: /<operator>/<number> with input, output and `call`, as vendors' tools expect them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from torchferry.accuracy.file.call_json import CallLine, encoded_value
from torchferry.accuracy.file.hdf5 import (
    ADDRESS,
    ONNX,
    DatasetTemplate,
    element,
    floating,
    group_pieces,
    integer,
    number_attribute,
    numbers_attribute,
    small_dataset,
    stored_dims,
    text,
    text_pieces,
    truth,
)
from torchferry.accuracy.model import SIZES, Call, TensorRecord, TensorRef, Value
from torchferry.readiness.model import Special

# The groups and scalars of a call in HDF5, made once for all calls that have the same.

TEXT = 100  # what the attribute `Type` says of a text


class _Of(Enum):
    """What a number in the bytes of a structure says."""

    OWN = "own"  # where something of the structure itself lies, from its start
    TENSOR = "tensor"  # where the dataset of a tensor lies, by its number
    SCALAR = "scalar"  # where that of a scalar lies, by its number
    LINE = "line"  # where the call's JSON lies
    LENGTH4 = "length4"  # how long that is
    LENGTH8 = "length8"


class NumberSlot(NamedTuple):
    """A number that is different in each call."""

    of: _Of
    value: int = 0


Members = dict[bytes, "NumberSlot | Members"]


class CallStructure:
    """Bytes with slots; what differs between calls is filled in at once. Its scalars lie elsewhere, for good."""

    def __init__(self, pieces: Sequence[bytes | NumberSlot], group: int, scalars: Sequence[int]) -> None:
        self.group = group  # where the call's own group is, from the start
        formats = ["<"]
        self._values: list[bytes | int] = []
        slots: list[tuple[int, NumberSlot]] = []
        for piece in _joined(pieces, scalars):
            if isinstance(piece, NumberSlot):
                formats.append("I" if piece.of is _Of.LENGTH4 else "Q")
                slots.append((len(self._values), piece))
                self._values.append(0)
            else:
                formats.append(f"{len(piece)}s")
                self._values.append(piece)
        self._own = [(index, slot.value) for index, slot in slots if slot.of is _Of.OWN]
        self._tensors = [(index, slot.value) for index, slot in slots if slot.of is _Of.TENSOR]
        self._line, self._length4, self._length8 = (
            next(index for index, slot in slots if slot.of is kind)
            for kind in (_Of.LINE, _Of.LENGTH4, _Of.LENGTH8)
        )
        self._pack = struct.Struct("".join(formats)).pack

    def at(self, place: int, tensors: Sequence[int], line: int, length: int) -> bytes:
        """The bytes for this place in the file."""
        values = self._values.copy()
        for index, own in self._own:
            values[index] = place + own
        for index, number in self._tensors:
            values[index] = tensors[number]
        values[self._line] = line
        values[self._length4] = values[self._length8] = length
        return self._pack(*values)


def _joined(pieces: Sequence[bytes | NumberSlot], scalars: Sequence[int]) -> list[bytes | NumberSlot]:
    """The pieces with the places of scalars put in, and as few of them as there can be."""
    joined: list[bytes | NumberSlot] = []
    for piece in pieces:
        if isinstance(piece, NumberSlot) and piece.of is _Of.SCALAR:
            piece = ADDRESS.pack(scalars[piece.value])
        last = joined[-1] if joined else None
        if isinstance(piece, bytes) and isinstance(last, bytes):
            joined[-1] = last + piece
        else:
            joined.append(piece)
    return joined


class StructureBuilder:
    """Collects the members of a call, then closes their groups."""

    def __init__(self) -> None:
        self._pieces: list[bytes | NumberSlot] = []
        self._size = 0
        self._members: Members = {b"input": {}, b"output": {}}
        self.scalars: list[bytes] = []  # datasets that are the same in all calls

    def put(self, path: tuple[bytes, ...], data: bytes) -> None:
        """A dataset that is the same in all calls."""
        _put(self._members, path, NumberSlot(_Of.SCALAR, len(self.scalars)))
        self.scalars.append(data)

    def put_tensor(self, path: tuple[bytes, ...], number: int) -> None:
        """The dataset of a tensor, which lies elsewhere."""
        _put(self._members, path, NumberSlot(_Of.TENSOR, number))

    def built(self, scalars: Sequence[int]) -> CallStructure:
        """The whole, with its scalars at these places in the file; the last group is the call's own."""
        line = text_pieces(NumberSlot(_Of.LINE), NumberSlot(_Of.LENGTH4), NumberSlot(_Of.LENGTH8), TEXT)
        self._members[b"call"] = self._add(line)
        group = self._close(self._members).value
        return CallStructure(self._pieces, group, scalars)

    def _add(self, pieces: Sequence[bytes | NumberSlot]) -> NumberSlot:
        start = self._size
        self._pieces += pieces
        for piece in pieces:
            if isinstance(piece, NumberSlot):
                self._size += 4 if piece.of is _Of.LENGTH4 else 8
            else:
                self._size += len(piece)
        return NumberSlot(_Of.OWN, start)

    def _close(self, members: Members) -> NumberSlot:
        links = [(name, self._close(at) if isinstance(at, dict) else at) for name, at in members.items()]
        return self._add(group_pieces(links))


def _put(members: Members, path: tuple[bytes, ...], at: NumberSlot) -> None:
    """Under this name, or the next free one where something else has it."""
    for part in path[:-1]:
        below = members.setdefault(part, {})
        while not isinstance(below, dict):
            part += b"#"
            below = members.setdefault(part, {})
        members = below
    name, count = path[-1], 1
    while name in members:
        count += 1
        name = path[-1] + b"#%d" % count
    members[name] = at


# What the attribute `Type` says of a dataset; the numbers below 100 are those of the vendors' dumper.
TENSOR, INTS, INT, BOOL, DOUBLE, NOTHING, DTYPE, MEMORY_FORMAT = 0, 2, 3, 4, 5, 8, 14, 17
MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
# HDF5 hands out bfloat16 as float32, and the vendors' comparison refuses numbers that it does not know
_SHOWN_AS = {"bfloat16": ONNX["float32"]}
_DEVICES = {"cpu": 0, "cuda": 1}
_OTHER_DEVICE = 10  # the vendor's
_PLAIN_FORMAT = 2  # elements lie as shape and strides say
_LONGEST_NAME, _LONGEST_DATA = 500, 60_000
_REMEMBERED, _LINKED = 5000, 200_000  # structures of calls, and datasets, that are kept in memory
_INT64 = range(-(1 << 63), 1 << 63)


@lru_cache(maxsize=50_000)
def _tensor_template(
    dtype: str, shape: tuple[int, ...], stride: tuple[int, ...], device: str, part: tuple[int, ...]
) -> DatasetTemplate:
    dims = stored_dims(shape, stride)
    nbytes = SIZES[dtype] * math.prod(dims)
    attributes = [
        number_attribute("DataType", _SHOWN_AS.get(dtype) or ONNX.get(dtype, 0)),
        number_attribute("DeviceType", _DEVICES.get(device.partition(":")[0], _OTHER_DEVICE)),
        number_attribute("Type", TENSOR),
        number_attribute("FormatType", _PLAIN_FORMAT),
        numbers_attribute("Stride", stride),
        *([numbers_attribute("Part", part)] if part else []),
    ]
    return DatasetTemplate(element(dtype), dims, nbytes, attributes)


@lru_cache(maxsize=10_000)
def _path(name: str) -> tuple[bytes, ...]:
    """The groups and the dataset that a tensor's name means; no component that HDF5 takes for something else."""
    parts = [part for part in name.split("/") if part] or ["_"]
    names = [part.replace(".", "%2E") if part in (".", "..") else part.replace("\0", "%00") for part in parts]
    return tuple(each.encode("utf-8", "backslashreplace")[:_LONGEST_NAME] for each in names)


class CallForm:
    """What calls that are alike have in common: all but their numbers, steps and figures."""

    __slots__ = ("_call", "_kept", "datasets", "group", "key", "line", "structure")

    def __init__(self, call: Call) -> None:
        arguments = encoded_value(call.arguments)
        self.line = CallLine(call, arguments)
        self.group = call.group
        self._call = call
        self._kept = kept_tensors(call)
        self.datasets = [
            _tensor_template(
                stored.dtype, stored.shape, stored.stride, stored.device, (tensor.part or ())[1:]
            )
            for tensor in self._kept
            for stored in (tensor.kept_part or tensor,)
        ]
        # calls with equal arguments, and equal names of tensors, have the same groups and scalars
        self.key = (arguments, *[tensor.name for tensor in self._kept])
        self.structure: CallStructure | None = None  # once it has a place in the file

    def builder(self) -> StructureBuilder:
        """A builder of a call's groups and scalars."""
        return _structure_of(self._call, self._kept)


def kept_tensors(call: Call) -> list[TensorRecord]:
    """Those that are datasets in the file, as a whole or in part."""
    tensors = (*call.inputs, *call.outputs)
    return [tensor for tensor in tensors if kept_offset(tensor) is not None and tensor.dtype in SIZES]


def kept_offset(tensor: TensorRecord) -> int | None:
    """Where what is kept of its bytes lies in the file."""
    return tensor.offset if tensor.part is None else tensor.part.offset


class CallObjects:
    """Makes the objects of calls; a dataset that is the same as an earlier one is linked."""

    def __init__(self) -> None:
        self._known: dict[tuple[DatasetTemplate, int], int] = {}
        self._scalars: dict[bytes, int] = {}
        self._structures: dict[tuple[str, ...], CallStructure] = {}

    def of(self, form: CallForm, offsets: Sequence[int], base: int, line: bytes) -> tuple[bytes, int]:
        """A call's JSON and objects for this place in the file, and where its group will be.

        `offsets` are those of the tensors that are kept.
        """
        parts = [line + bytes(-len(line) % 8)]
        place = base + len(parts[0])
        known = self._known
        places = []
        for key in zip(form.datasets, offsets, strict=True):
            at = known.get(key)
            if at is None:
                if len(known) >= _LINKED:
                    known.clear()
                at = known[key] = place
                parts.append(key[0].at(key[1]))
                place += len(parts[-1])
            places.append(at)
        structure = form.structure
        if structure is None:
            structure, place = self._structure(form, parts, place)
        parts.append(structure.at(place, places, base, len(line)))
        return b"".join(parts), place + structure.group

    def _structure(self, form: CallForm, parts: list[bytes], place: int) -> tuple[CallStructure, int]:
        """The form's, whose new scalars go to `parts`; and the place behind them."""
        found = self._structures.get(form.key)
        if found is None:
            builder = form.builder()
            scalars = []
            for data in builder.scalars:
                if data not in self._scalars:
                    if len(self._scalars) >= _LINKED:
                        self._scalars.clear()
                    self._scalars[data] = place
                    parts.append(data)
                    place += len(data)
                scalars.append(self._scalars[data])
            if len(self._structures) >= _REMEMBERED:
                self._structures.clear()
            found = self._structures[form.key] = builder.built(scalars)
        form.structure = found
        return found, place


def _structure_of(call: Call, kept: list[TensorRecord]) -> StructureBuilder:
    builder = StructureBuilder()
    left = dict(enumerate(kept))
    numbers = {id(tensor): number for number, tensor in left.items()}
    for name, value in call.arguments:  # h5py lists members in the order in which they were put
        given = value if isinstance(value, tuple) else (value,)
        for index in (each.index for each in given if isinstance(each, TensorRef)):
            tensor = call.inputs[index] if 0 <= index < len(call.inputs) else None
            number = numbers.get(id(tensor), -1)
            if number in left:
                builder.put_tensor(_path(left.pop(number).name), number)
        _put_argument(builder, name, value)
    for number, tensor in left.items():
        builder.put_tensor(_path(tensor.name), number)
    return builder


def _put_argument(builder: StructureBuilder, name: str, value: Value) -> None:
    """An argument that is no tensor; in a list of tensors, what is missing."""
    if isinstance(value, TensorRef):
        return
    if isinstance(value, tuple) and any(isinstance(each, TensorRef) for each in value):
        for index, each in enumerate(value):
            if each is None:
                builder.put((b"input", *_path(name), *_path(f"{name}_{index}")), _scalar(None))
        return
    builder.put((b"input", *_path(name)), _scalar(value))


def _scalar(value: Value) -> bytes:
    kind, dims, data, number = _stored(value)
    return small_dataset(kind, dims, data, [number_attribute("Type", number)])


def _stored(value: Value) -> tuple[bytes, tuple[int, ...] | None, bytes, int]:
    """Element type, dimensions, bytes and `Type` of a value."""
    if value is None:
        return integer(8), None, b"", NOTHING
    if isinstance(value, tuple):
        return _stored_list(value)
    if isinstance(value, bool):
        return truth(), (), b"\1" if value else b"\0", BOOL
    if isinstance(value, int) and value in _INT64:
        return integer(8), (), struct.pack("<q", value), INT
    if isinstance(value, float):
        return floating("float64"), (), struct.pack("<d", value), DOUBLE
    if isinstance(value, Special) and value.kind == "dtype" and value.text in ONNX:
        return integer(8), (), struct.pack("<q", ONNX[value.text]), DTYPE
    if isinstance(value, Special) and value.kind == "memory_format" and value.text in MEMORY_FORMATS:
        return integer(8), (), struct.pack("<q", MEMORY_FORMATS.index(value.text)), MEMORY_FORMAT
    if isinstance(value, Special):
        return _stored_text(value.text)
    return _stored_text(value if isinstance(value, str) else encoded_value(value))


def _stored_list(value: tuple[Value, ...]) -> tuple[bytes, tuple[int, ...] | None, bytes, int]:
    sorts, count = {type(each) for each in value}, len(value)
    if count * 8 <= _LONGEST_DATA:
        if sorts == {bool}:
            return truth(), (count,), struct.pack(f"<{count}b", *value), BOOL
        if sorts <= {int} and all(each in _INT64 for each in value):
            return integer(8), (count,), struct.pack(f"<{count}q", *value), INTS
        if sorts == {float}:
            return floating("float64"), (count,), struct.pack(f"<{count}d", *value), DOUBLE
    return _stored_text(encoded_value(value))


def _stored_text(value: str) -> tuple[bytes, tuple[int, ...] | None, bytes, int]:
    """What is too long for a header is cut here, and whole in `call`."""
    data = value.encode("utf-8", "backslashreplace")[:_LONGEST_DATA] or b"\0"
    return text(len(data)), (), data, TEXT
