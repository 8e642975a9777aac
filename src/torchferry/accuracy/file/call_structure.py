"""The groups and scalars of a call in HDF5, made once for all calls that have the same."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from torchferry.accuracy.file.objects import ADDRESS, group_pieces, text_pieces

TEXT = 100  # what the attribute `Type` says of a text


class _Of(Enum):
    """What a number in the bytes of a structure says."""

    OWN = "own"  # where something of the structure itself lies, from its start
    TENSOR = "tensor"  # where the dataset of a tensor lies, by its number
    SCALAR = "scalar"  # where that of a scalar lies, by its number
    LINE = "line"  # where the call's JSON lies
    LENGTH4 = "length4"  # how long that is
    LENGTH8 = "length8"


class Slot(NamedTuple):
    """A number that is different in each call."""

    of: _Of
    value: int = 0


Members = dict[bytes, "Slot | Members"]


class CallStructure:
    """Bytes with slots; what differs between calls is filled in at once. Its scalars lie elsewhere, for good."""

    def __init__(self, pieces: Sequence[bytes | Slot], group: int, scalars: Sequence[int]) -> None:
        self.group = group  # where the call's own group is, from the start
        formats = ["<"]
        self._values: list[bytes | int] = []
        slots: list[tuple[int, Slot]] = []
        for piece in _joined(pieces, scalars):
            if isinstance(piece, Slot):
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


def _joined(pieces: Sequence[bytes | Slot], scalars: Sequence[int]) -> list[bytes | Slot]:
    """The pieces with the places of scalars put in, and as few of them as there can be."""
    joined: list[bytes | Slot] = []
    for piece in pieces:
        if isinstance(piece, Slot) and piece.of is _Of.SCALAR:
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
        self._pieces: list[bytes | Slot] = []
        self._size = 0
        self._members: Members = {b"input": {}, b"output": {}}
        self.scalars: list[bytes] = []  # datasets that are the same in all calls

    def put(self, path: tuple[bytes, ...], data: bytes) -> None:
        """A dataset that is the same in all calls."""
        _put(self._members, path, Slot(_Of.SCALAR, len(self.scalars)))
        self.scalars.append(data)

    def put_tensor(self, path: tuple[bytes, ...], number: int) -> None:
        """The dataset of a tensor, which lies elsewhere."""
        _put(self._members, path, Slot(_Of.TENSOR, number))

    def built(self, scalars: Sequence[int]) -> CallStructure:
        """The whole, with its scalars at these places in the file; the last group is the call's own."""
        line = text_pieces(Slot(_Of.LINE), Slot(_Of.LENGTH4), Slot(_Of.LENGTH8), TEXT)
        self._members[b"call"] = self._add(line)
        group = self._close(self._members).value
        return CallStructure(self._pieces, group, scalars)

    def _add(self, pieces: Sequence[bytes | Slot]) -> Slot:
        start = self._size
        self._pieces += pieces
        for piece in pieces:
            if isinstance(piece, Slot):
                self._size += 4 if piece.of is _Of.LENGTH4 else 8
            else:
                self._size += len(piece)
        return Slot(_Of.OWN, start)

    def _close(self, members: Members) -> Slot:
        links = [(name, self._close(at) if isinstance(at, dict) else at) for name, at in members.items()]
        return self._add(group_pieces(links))


def _put(members: Members, path: tuple[bytes, ...], at: Slot) -> None:
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
