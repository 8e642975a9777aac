"""The tables of a record of statistics as HDF5 datasets, for those who read it with plain h5py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from torchferry.accuracy.file.chunks import Kind
from torchferry.accuracy.file.datatypes import compound, floating, integer, text
from torchferry.accuracy.file.groups import root
from torchferry.accuracy.file.objects import DatasetTemplate, chunked_dataset
from torchferry.accuracy.file.tables import (
    CALL_ROW,
    CALLS_A_BLOCK,
    CONTENT,
    CONTENTS_A_BLOCK,
    ROW,
    ROWS_A_BLOCK,
)
from torchferry.accuracy.file.trees import chunk_tree
from torchferry.accuracy.model import Header

Table = tuple[Sequence[int], int]  # where its blocks lie, and how many rows they have


class TableObjects:
    """Makes the objects; a text that is in the file already is linked."""

    def __init__(self) -> None:
        self._texts: dict[Kind, tuple[int, int]] = {}  # lines that were written together, and where

    def forget(self) -> None:
        """None of them is in the file."""
        self._texts.clear()

    def encoded(
        self, base: int, header: Header, tables: Mapping[Kind, Table], lines: Mapping[Kind, Sequence[bytes]]
    ) -> tuple[bytes, int]:
        """The objects for this place in the file, and where the root will be."""
        parts: list[bytes] = []
        place = base
        members = []
        for name, kind, element, size, rows in _datasets():
            places, count = tables[kind]
            tree = chunk_tree(places, rows, rows * size, place)
            parts += [tree.data, chunked_dataset(element, count, rows, size, tree.root)]
            members.append((name.encode(), place + len(tree.data)))
            place += len(parts[-2]) + len(parts[-1])
        for name, kind in (("sites", Kind.SITES), ("signatures", Kind.SIGNATURES)):
            data, address = self._text(kind, lines[kind], place)
            parts.append(data)
            members.append((name.encode(), address))
            place += len(data)
        data, address = root(members, header, place)
        return b"".join([*parts, data]), address

    def _text(self, kind: Kind, lines: Sequence[bytes], place: int) -> tuple[bytes, int]:
        """All lines of a sort as one dataset, and where it is; nothing new if it is in the file already."""
        count, address = self._texts.get(kind, (-1, 0))
        if count == len(lines):
            return b"", address
        data = b"".join(lines) or b"\0"
        padded = data + bytes(-len(data) % 8)
        self._texts[kind] = len(lines), place + len(padded)
        return padded + DatasetTemplate(text(len(data)), (), len(data)).at(place), place + len(padded)


@cache
def _datasets() -> list[tuple[str, Kind, bytes, int, int]]:
    """Name, chunks, element type, its size, and elements in a chunk."""
    whole, small, real = integer(8, signed=False), integer(4, signed=False), floating("float64")
    figures = [
        ("count", whole), ("nans", whole), ("infinities", whole), ("zeros", whole), ("minimum", real),
        ("maximum", real), ("mean", real), ("rms", real), ("checksum", whole),
    ]  # fmt: skip
    row = compound([(name, 8 * index, kind) for index, (name, kind) in enumerate(figures)], ROW.size)
    numbers = [("first", 0, whole), ("contents", 8, small), ("step", 12, small), ("site", 16, small)]
    call = compound([*numbers, ("signature", 20, small)], CALL_ROW.size)
    return [
        ("statistics", Kind.ROWS, row, ROW.size, ROWS_A_BLOCK),
        ("calls", Kind.CALLS, call, CALL_ROW.size, CALLS_A_BLOCK),
        ("contents", Kind.CONTENTS, small, CONTENT.size, CONTENTS_A_BLOCK),
    ]
