"""The tables of a record of statistics: how they lie in the file, and calls made of them.

A call is a row of a table: its step, numbers of its site and its signature, and where the numbers of its contents
start. Sites (operator, phase, module ...) and signatures (arguments, tensors without contents) are stored once each.
A content's number is that of its row of figures.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from torchferry.accuracy.file.call_json import decoded_tensor, decoded_value
from torchferry.accuracy.file.chunks import ChunkKind
from torchferry.accuracy.file.hdf5 import (
    DatasetTemplate,
    chunk_tree,
    chunked_dataset,
    compound,
    floating,
    integer,
    root,
    text,
)
from torchferry.accuracy.model import ROW, Call, LazySequence, RecordHeader, Statistics, TensorRecord, Value

if TYPE_CHECKING:
    import numpy as np

    Columns = np.ndarray[Any, np.dtype[Any]]

# first content, number of contents, step, site, signature; 0 as signature: none
CALL_ROW = struct.Struct("<QIIII")
CONTENT = struct.Struct("<I")
SKETCH = struct.Struct("<Q8d")  # the memory that the tensor lay in, sums with random signs
ROWS_A_BLOCK = 8192
CALLS_A_BLOCK = 8192
CONTENTS_A_BLOCK = 65536


class StoredSignature:
    """What calls of one sort have in common."""

    def __init__(self, line: bytes) -> None:
        made = json.loads(line)
        self.arguments: tuple[tuple[str, Value], ...] = tuple(
            (name, decoded_value(value)) for name, value in made["arguments"]
        )
        self.inputs = tuple(map(decoded_tensor, made["inputs"]))
        self.outputs = tuple(map(decoded_tensor, made["outputs"]))
        self.results = decoded_value(made["results"])


class _Signatures(LazySequence[StoredSignature]):
    """Of a long run there may be one for each step: each is decoded when it is asked for."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._made: dict[int, StoredSignature] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def _make(self, at: int) -> StoredSignature:
        made = self._made.get(at)
        if made is None:
            made = self._made[at] = StoredSignature(self._lines[at])
        return made


class Tables:
    """Makes calls out of the tables of a file."""

    def __init__(self, memory: memoryview, tables: dict[ChunkKind, list[tuple[int, int]]]) -> None:
        self._memory = memory
        self._rows = [start for start, _ in tables.get(ChunkKind.ROWS, ())]
        self._calls = [start for start, _ in tables.get(ChunkKind.CALLS, ())]
        self._contents = [start for start, _ in tables.get(ChunkKind.CONTENTS, ())]
        self._sketches = [start for start, _ in tables.get(ChunkKind.SKETCHES, ())]
        self.lines: dict[ChunkKind, list[bytes]] = {}
        for kind in (ChunkKind.SITES, ChunkKind.SIGNATURES):
            places = tables.get(kind, ())
            text = b"".join(bytes(memory[start : start + length]) for start, length in places)
            self.lines[kind] = text.splitlines(keepends=True)
        # operator, phase, model, module, place, node
        self.sites: list[list[str]] = [json.loads(line) for line in self.lines[ChunkKind.SITES]]
        self.signatures = _Signatures(self.lines[ChunkKind.SIGNATURES])
        # calls that are complete: rows are filled in their order, the signature last
        self.count = len(self._calls) * CALLS_A_BLOCK
        while self.count and not self._is_whole(self.count - 1):
            self.count -= 1

    @property
    def extents(self) -> dict[ChunkKind, tuple[list[int], int]]:
        """Where the blocks of each table lie, and how many rows of them the calls use."""
        first, count = self._call_row(self.count - 1)[:2] if self.count else (0, 0)
        contents = first + count
        rows = max((self._content(number) for number in range(contents)), default=0)
        return {
            ChunkKind.ROWS: (self._rows, rows),
            ChunkKind.CALLS: (self._calls, self.count),
            ChunkKind.CONTENTS: (self._contents, contents),
        }

    def _is_whole(self, number: int) -> bool:
        first, contents, _, site, signature = self._call_row(number)
        is_known = 0 < signature <= len(self.signatures) and 0 < site <= len(self.sites)
        return is_known and bool(first + contents <= len(self._contents) * CONTENTS_A_BLOCK)

    def _call_row(self, number: int) -> tuple[Any, ...]:
        block, place = divmod(number, CALLS_A_BLOCK)
        return CALL_ROW.unpack_from(self._memory, self._calls[block] + place * CALL_ROW.size)

    def call(self, number: int) -> Call:
        """The call with this number; the first is 0."""
        first, count, step, site, signature = self._call_row(number)
        operator, phase, model, module, place, node = self.sites[site - 1]
        known = self.signatures[signature - 1]
        contents = [self._content(first + index) for index in range(count)]
        contents += [0] * (len(known.inputs) + len(known.outputs) - count)
        given = zip((*known.inputs, *known.outputs), contents, strict=False)
        tensors = [self._filled(tensor, content) for tensor, content in given]
        inputs, outputs = tensors[: len(known.inputs)], tensors[len(known.inputs) :]
        return Call(
            number + 1, operator, step, phase, model, module, place, node,
            known.arguments, tuple(inputs), tuple(outputs), known.results,
        )  # fmt: skip

    # The same as columns of numpy, for those who read all of a long run.

    def call_columns(self, start: int, stop: int) -> Columns:
        """Fields first, contents, step, site, signature of these calls."""
        return _rows(self._memory, self._calls, _columns()[1], CALLS_A_BLOCK, start, stop)

    def content_columns(self, start: int, stop: int) -> Columns:
        """Numbers of contents, as `first` of a call counts them."""
        import numpy as np

        return _rows(self._memory, self._contents, np.dtype("<u4"), CONTENTS_A_BLOCK, start, stop)

    def figures_of(self, contents: Columns) -> Columns:
        """The fields of Statistics of these contents, none of which is 0."""
        kind = _columns()[0]
        if not len(contents):
            return _rows(self._memory, (), kind, ROWS_A_BLOCK, 0, 0)
        first = int(contents.min()) - 1
        found = _rows(self._memory, self._rows, kind, ROWS_A_BLOCK, first, int(contents.max()))
        chosen: Columns = found[contents - (first + 1)]
        return chosen

    def sketch(self, content: int) -> tuple[int, tuple[float, ...]] | None:
        """Memory and projections of a content; None where there are none."""
        block, place = divmod(content - 1, ROWS_A_BLOCK)
        if content == 0 or block >= len(self._sketches):
            return None
        memory, *projections = SKETCH.unpack_from(self._memory, self._sketches[block] + place * SKETCH.size)
        return memory, tuple(projections)

    def _content(self, number: int) -> int:
        block, place = divmod(number, CONTENTS_A_BLOCK)
        found: int = CONTENT.unpack_from(self._memory, self._contents[block] + place * CONTENT.size)[0]
        return found

    def _filled(self, tensor: TensorRecord, content: int) -> TensorRecord:
        block, place = divmod(content - 1, ROWS_A_BLOCK)
        if content == 0 or block >= len(self._rows):
            return tensor
        figures = ROW.unpack_from(self._memory, self._rows[block] + place * ROW.size)
        return replace(tensor, content=content, statistics=Statistics(*figures))


@cache
def _columns() -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The rows of figures and of calls."""
    import numpy as np

    kinds = ["<u8"] * 4 + ["<f8"] * 4 + ["<u8"]
    figures = np.dtype(list(zip(Statistics.__dataclass_fields__, kinds, strict=True)))
    names = ("first", "contents", "step", "site", "signature")
    return figures, np.dtype(list(zip(names, ["<u8"] + ["<u4"] * 4, strict=True)))


def _rows(
    memory: memoryview, blocks: Sequence[int], kind: np.dtype[Any], rows_a_block: int, start: int, stop: int
) -> Columns:
    """Rows of a table; a copy, so that the file can be closed."""
    import numpy as np

    found = [np.empty(0, kind)]
    for block in range(start // rows_a_block, -(-stop // rows_a_block)):
        low, high = max(start - block * rows_a_block, 0), min(stop - block * rows_a_block, rows_a_block)
        found.append(np.frombuffer(memory, kind, high - low, blocks[block] + low * kind.itemsize))
    return np.concatenate(found)


# The tables of a record of statistics as HDF5 datasets, for those who read it with plain h5py.

Table = tuple[Sequence[int], int]  # where its blocks lie, and how many rows they have


class TableObjects:
    """Makes the objects; a text that is in the file already is linked."""

    def __init__(self) -> None:
        self._texts: dict[ChunkKind, tuple[int, int]] = {}  # lines that were written together, and where

    def forget(self) -> None:
        """None of them is in the file."""
        self._texts.clear()

    def encoded(
        self,
        base: int,
        header: RecordHeader,
        tables: Mapping[ChunkKind, Table],
        lines: Mapping[ChunkKind, Sequence[bytes]],
    ) -> tuple[bytes, int]:
        """The objects for this place in the file, and where the root will be."""
        parts: list[bytes] = []
        place = base
        members = []
        for name, kind, element, size, rows in _datasets():
            places, count = tables[kind]
            tree, start = chunk_tree(places, rows, rows * size, place)
            parts += [tree, chunked_dataset(element, count, rows, size, start)]
            members.append((name.encode(), place + len(tree)))
            place += len(parts[-2]) + len(parts[-1])
        for name, kind in (("sites", ChunkKind.SITES), ("signatures", ChunkKind.SIGNATURES)):
            data, address = self._text(kind, lines[kind], place)
            parts.append(data)
            members.append((name.encode(), address))
            place += len(data)
        data, address = root(members, header, place)
        return b"".join([*parts, data]), address

    def _text(self, kind: ChunkKind, lines: Sequence[bytes], place: int) -> tuple[bytes, int]:
        """All lines of a sort as one dataset, and where it is; nothing new if it is in the file already."""
        count, address = self._texts.get(kind, (-1, 0))
        if count == len(lines):
            return b"", address
        data = b"".join(lines) or b"\0"
        padded = data + bytes(-len(data) % 8)
        self._texts[kind] = len(lines), place + len(padded)
        return padded + DatasetTemplate(text(len(data)), (), len(data)).at(place), place + len(padded)


@cache
def _datasets() -> list[tuple[str, ChunkKind, bytes, int, int]]:
    """Name, chunks, element type, its size, and elements in a chunk."""
    whole, small, real = integer(8, signed=False), integer(4, signed=False), floating("float64")
    kinds = [whole] * 4 + [real] * 4 + [whole]
    figures = zip(Statistics.__dataclass_fields__, range(0, ROW.size, 8), kinds, strict=True)
    row = compound(list(figures), ROW.size)
    numbers = [("first", 0, whole), ("contents", 8, small), ("step", 12, small), ("site", 16, small)]
    call = compound([*numbers, ("signature", 20, small)], CALL_ROW.size)
    return [
        ("statistics", ChunkKind.ROWS, row, ROW.size, ROWS_A_BLOCK),
        ("calls", ChunkKind.CALLS, call, CALL_ROW.size, CALLS_A_BLOCK),
        ("contents", ChunkKind.CONTENTS, small, CONTENT.size, CONTENTS_A_BLOCK),
    ]
