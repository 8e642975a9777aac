"""Writes records: calls with the contents of their tensors, or with statistics. No torch, numpy or h5py."""

from __future__ import annotations

import ctypes
import math
import mmap
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from torchferry.accuracy.file.background import Buffer, Copy, RingMemory, memory_at
from torchferry.accuracy.file.call_json import encoded_header, encoded_tensor, encoded_value, figures_of
from torchferry.accuracy.file.call_objects import CallForm, CallObjects, kept_offset, kept_tensors
from torchferry.accuracy.file.chunks import COPIED, ChunkFile, ChunkKind, payload_after
from torchferry.accuracy.file.hdf5 import Groups
from torchferry.accuracy.file.tables import (
    CALL_ROW,
    CALLS_A_BLOCK,
    CONTENT,
    CONTENTS_A_BLOCK,
    ROWS_A_BLOCK,
    SKETCH,
    TableObjects,
)
from torchferry.accuracy.model import ROW, Call, RecordHeader, TensorRecord, Value

CALL_START = struct.Struct("<QQ")  # in a CALL chunk: length of its JSON, where the call's group is
INDEX_START = struct.Struct("<QQ")  # in an INDEX chunk: length of the header's JSON, number of calls
INDEX_ENTRY = struct.Struct("<QQ")  # place and length of a call's JSON
_SECONDS = 0.5  # between checkpoints, at least
# bytes of each call, and of each operator, in the list at the end and in HDF5's groups
_END_OF_CALL, _END_OF_OPERATOR = 160, 2560
_SHARE = 20  # a checkpoint may take this part of the time since the last


class _RecordFile(ABC):
    """What both kinds of records have in common: their head, HDF5's objects at each checkpoint, their end.

    The file can be read at any time, also if the process is killed.
    """

    def __init__(self, path: Path, header: RecordHeader, most: int | None = None) -> None:
        """`most`: so large the file may become at most."""
        self.path = path
        self._header = replace(header, complete=False)
        self._file = ChunkFile(path, most)
        self._file.rescue = self._rescue
        self.lock = self._file.lock
        self._index: list[bytes] = []
        self._due = 0.0  # when there may be another checkpoint

    def _begin(self) -> None:
        text = encoded_header(self._header).encode()
        self._file.add(ChunkKind.HEADER, text, len(text))
        self._save()

    @property
    def failed(self) -> str:
        """Why nothing more is written; "" all is well."""
        return self._file.failed

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._file.end

    @property
    def most(self) -> int:
        """How large it may become, as far as is known now."""
        return self._file.most

    def close(self, notes: Iterable[str] = ()) -> None:
        """End the file."""
        if self._file.is_mine:
            with self.lock:
                self._file.is_ending = True
                self._save_all(notes, complete=True)
        self._file.close()

    @abstractmethod
    def _objects_for(self, place: int, header: RecordHeader) -> tuple[bytes, int]:
        """HDF5's objects that are not in the file yet, for this place in it, and where the root will be."""

    def _save(self) -> None:
        started = time.monotonic()
        data, root = self._objects_for(payload_after(self._file.end), self._header)
        self._file.add(ChunkKind.GROUPS, data, len(data))
        if self._file.flush():
            self._file.point_to(root, self._file.end)
        ended = time.monotonic()
        self._due = ended + max(_SECONDS, _SHARE * (ended - started))

    def _save_all(self, notes: Iterable[str], complete: bool) -> None:
        header = replace(self._header, notes=(*self._header.notes, *notes), complete=complete)
        data, root = self._objects_for(payload_after(self._file.end), header)
        self._file.add(ChunkKind.GROUPS, data, len(data))
        index = index_payload(encoded_header(header).encode(), self._index)
        place = self._file.add(ChunkKind.INDEX, index, len(index))
        if self._file.flush():
            self._file.point_to(root, self._file.end, place, len(index))

    def _rescue(self, reason: str) -> None:
        """Let the file lead to all that is in it: there may be room now that the last piece is not."""
        self._save_all((f"cut off: {reason}",), complete=False)


class RecordWriter(_RecordFile):
    """Appends calls with the contents of their tensors.

    What nobody reads before it is closed has no checkpoints, and so the same bytes whenever it is written.
    """

    def __init__(
        self, path: Path, header: RecordHeader, most: int | None = None, *, is_read_meanwhile: bool = True
    ) -> None:
        super().__init__(path, header, most)
        self._objects = CallObjects()
        self._groups = Groups()
        self._seen: set[str] = set()  # operators
        self._checkpointed = 0  # calls that a checkpoint has seen
        self._begin()
        if not is_read_meanwhile:
            self._due = math.inf

    def append(self, data: Buffer) -> int:
        """Append bytes; where they lie."""
        view = memoryview(data).cast("B")
        return self._append(view, len(view))

    def append_memory(self, address: int, nbytes: int) -> int:
        """Append bytes straight from memory; where they lie."""
        if nbytes <= COPIED:  # it is copied anyway
            return self._append(ctypes.string_at(address, nbytes), nbytes)
        return self._append(memory_at(address, nbytes), nbytes)

    def _append(self, data: Buffer, nbytes: int) -> int:
        if not self._file.is_mine:
            return 0
        with self._file.lock:
            if nbytes == 0:
                return payload_after(self._file.end)
            return self._file.add(ChunkKind.DATA, data, nbytes)

    @property
    def is_in_background(self) -> bool:
        """Whether a thread writes the file."""
        return self._file.is_in_background

    def write_in_background(self, memory: RingMemory) -> None:
        """From now on a thread writes the file, and all that is appended goes through this memory."""
        with self._file.lock:
            self._file.write_in_background(memory)

    def append_copied(self, nbytes: int, copy: Copy) -> int:
        """Append bytes that `copy` puts into the memory that goes to the file in the background; where they will lie."""
        if not self._file.is_mine:
            return 0
        with self._file.lock:
            return self._file.add_copied(ChunkKind.DATA, nbytes, copy)

    def drain(self) -> None:
        """Wait until all that was appended is in the file."""
        if self._file.is_mine:
            with self._file.lock:
                self._file.drain()

    def write(self, call: Call) -> None:
        """Append a complete call, whose tensors were appended before."""
        figures = figures_of((*call.inputs, *call.outputs), call.random)
        offsets = [kept_offset(tensor) or 0 for tensor in kept_tensors(call)]
        self.write_alike(CallForm(call), call.number, call.step, figures, offsets)

    def write_alike(
        self, form: CallForm, number: int, step: int, figures: Sequence[int | str], offsets: Sequence[int]
    ) -> None:
        """Append a call of a form that belongs to this file alone: with what `figures_of` would give for it, and the
        offsets of the tensors that are kept."""
        if not self._file.is_mine:
            return
        text = form.line.of(number, step, figures)
        with self._file.lock:
            start = payload_after(self._file.end) + CALL_START.size
            objects, group = self._objects.of(form, offsets, start, text)
            payload = CALL_START.pack(len(text), group) + objects
            self._file.add(ChunkKind.CALL, payload, len(payload))
            if not self._file.flush():
                return
            self._groups.add(form.group, number, group)
            self._index.append(INDEX_ENTRY.pack(start, len(text)))
            self._file.spare += _END_OF_CALL
            if form.group not in self._seen:
                self._seen.add(form.group)
                self._file.spare += _END_OF_OPERATOR
            if time.monotonic() >= self._due:
                self._save()

    def checkpoint(self) -> None:
        """Let plain h5py see all calls up to now, unless that would cost too much again."""
        if not self._file.is_mine:
            return
        with self._file.lock:
            grown = len(self._index) - self._checkpointed
            if grown * 8 > self._checkpointed or (grown and time.monotonic() >= self._due):
                self._save()

    def _save(self) -> None:
        super()._save()
        self._checkpointed = len(self._index)

    def _objects_for(self, place: int, header: RecordHeader) -> tuple[bytes, int]:
        return self._groups.encoded(place, header)

    def _rescue(self, reason: str) -> None:
        end = self._file.written
        while self._index and INDEX_ENTRY.unpack(self._index[-1])[0] >= end:  # it was on its way
            self._index.pop()
        self._groups.forget(end)
        super()._rescue(reason)


def index_payload(header: bytes, entries: Sequence[bytes]) -> bytes:
    """An INDEX chunk."""
    padded = header + bytes(-len(header) % 8)
    return b"".join([INDEX_START.pack(len(header), len(entries)), padded, *entries])


# Writes a record of statistics: tables that lie in mapped memory of the file, so that a call costs a
# microsecond.
#
# What was put into a table is in the file even if the process is killed the next moment.

_ROW_SIZE, _CONTENT_SIZE, _CALL_SIZE = ROW.size, CONTENT.size, CALL_ROW.size
_put_call = CALL_ROW.pack_into


class _Block(ctypes.Structure):
    """The last block of a table, as code in C++ sees it, too: it may put rows there while there is room."""

    _fields_ = (
        ("address", ctypes.c_uint64),  # of the block, in memory
        ("first", ctypes.c_int64),  # the number of its first row
        ("used", ctypes.c_int64),  # rows
        ("limit", ctypes.c_int64),  # so many may be used without asking Python
    )


class _MappedTable:
    """Rows in blocks of the file that are mapped; all stay mapped, since another thread may still fill a row."""

    def __init__(self, file: ChunkFile, kind: ChunkKind, row_size: int, rows_a_block: int) -> None:
        self._file, self.kind = file, kind
        self.row_size, self.rows_a_block = row_size, rows_a_block
        self.places: list[int] = []  # of the blocks, in the file
        self._mapped: list[mmap.mmap] = []
        self.memory: mmap.mmap | bytearray = bytearray(rows_a_block * row_size)
        self._scratch = self.memory  # where rows go that no file takes
        self.block = _Block(_address(self.memory), 0, rows_a_block, 0)

    @property
    def count(self) -> int:
        """The number of rows in all blocks."""
        return int(self.block.first + self.block.used) if self.places else 0

    def extend(self) -> None:
        """Begin a new block."""
        size = self.rows_a_block * self.row_size
        place = self._file.reserve(self.kind, size, mmap.ALLOCATIONGRANULARITY)
        if place:
            try:
                memory = mmap.mmap(self._file.descriptor, size, offset=place)
            except OSError as error:
                self._file.fail(error)
                place = 0
        if not place:
            self.use_scratch()
            return
        first = len(self.places) * self.rows_a_block
        self.places.append(place)
        self._mapped.append(memory)
        self.memory = memory
        self._set_block(_address(memory), first, self.rows_a_block)

    def use_scratch(self) -> None:
        """Nothing goes into the file any more."""
        self.memory = self._scratch
        self._set_block(_address(self._scratch), self.block.first, 0)

    def _set_block(self, address: int, first: int, limit: int) -> None:
        block = self.block
        block.address, block.first, block.used, block.limit = address, first, 0, limit


def _address(memory: mmap.mmap | bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


@cache
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


def encoded_tensors(inputs: Iterable[TensorRecord], outputs: Iterable[TensorRecord]) -> str:
    """The tensors of calls that look alike, as a part of their signatures."""
    return ",".join(
        f'"{side}":[{",".join(map(encoded_tensor, tensors))}]'
        for side, tensors in (("inputs", inputs), ("outputs", outputs))
    )


class StatisticsWriter(_RecordFile):
    """Appends calls, and figures of their tensors, to tables. Where several threads do so, each holds `lock`."""

    def __init__(
        self, path: Path, header: RecordHeader, most: int | None = None, *, sketches: bool = False
    ) -> None:
        super().__init__(path, header, most)
        self._is_open = True
        self._sketches = (
            _MappedTable(self._file, ChunkKind.SKETCHES, SKETCH.size, ROWS_A_BLOCK) if sketches else None
        )
        self._rows = _MappedTable(self._file, ChunkKind.ROWS, ROW.size, ROWS_A_BLOCK)
        self._calls = _MappedTable(self._file, ChunkKind.CALLS, CALL_ROW.size, CALLS_A_BLOCK)
        self._contents = _MappedTable(self._file, ChunkKind.CONTENTS, CONTENT.size, CONTENTS_A_BLOCK)
        self._sites: dict[tuple[str, ...], int] = {}
        self._signatures: dict[str, int] = {}
        self._lines: dict[ChunkKind, list[bytes]] = {ChunkKind.SITES: [], ChunkKind.SIGNATURES: []}
        self._objects = TableObjects()
        self._file.when_forked = self._end_direct_writing
        self._begin()

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Where the blocks of rows, calls and contents are described, for code that fills them itself."""
        tables = (self._rows, self._calls, self._contents)
        return (
            ctypes.addressof(tables[0].block),
            ctypes.addressof(tables[1].block),
            ctypes.addressof(tables[2].block),
        )

    def _end_direct_writing(self) -> None:
        for table in (self._rows, self._calls, self._contents):
            table.block.limit = 0

    def row(self) -> tuple[int, int]:
        """The number of the next content, and where in memory its figures go; 0 if no file takes it."""
        table, block = self._rows, self._rows.block
        if not self._file.is_forked and block.used == ROWS_A_BLOCK:
            table.extend()
        if self._file.is_forked or not self._is_open:
            table.use_scratch()
            return 0, block.address
        used: int = block.used
        block.used = used + 1
        return block.first + used + 1, block.address + used * _ROW_SIZE

    def sketch(self, number: int, memory: int, projections: Sequence[float]) -> None:
        """Add a sketch to the content with this number, whose row was the last to be asked for."""
        table = self._sketches
        if table is None or not number:
            return
        block, place = divmod(number - 1, ROWS_A_BLOCK)
        if block == len(table.places):
            table.extend()
        SKETCH.pack_into(table.memory, place * SKETCH.size, memory, *projections)

    def site(self, operator: str, phase: str, model: str, module: str, place: str, node: str) -> int:
        """The number of a place in the program."""
        key = (operator, phase, model, module, place, node)
        number = self._sites.get(key)
        if number is None:
            number = self._sites[key] = self._put_line(ChunkKind.SITES, encoded_value(key))
        return number

    def signature(self, arguments: Sequence[tuple[str, Value]], tensors: str, results: Value) -> int:
        """The number of what calls of one sort have in common; the tensors as `encoded_tensors` gives them."""
        line = (
            f'{{"arguments":{encoded_value(tuple(arguments))},{tensors},"results":{encoded_value(results)}}}'
        )
        number = self._signatures.get(line)
        if number is None:
            number = self._signatures[line] = self._put_line(ChunkKind.SIGNATURES, line)
        return number

    def _put_line(self, kind: ChunkKind, line: str) -> int:
        data = line.encode() + b"\n"
        self._lines[kind].append(data)
        if self._file.is_mine:
            self._file.add(kind, data, len(data))
            self._file.flush()
        return len(self._lines[kind])

    def call(self, step: int, site: int, signature: int, contents: Sequence[int]) -> None:
        """Append a call; contents are those of its inputs, then of its outputs."""
        if self._file.is_forked or not self._is_open:
            return
        count = len(contents)
        numbers, calls = self._contents, self._calls
        used: int = numbers.block.used
        if used + count > CONTENTS_A_BLOCK:
            first = self._straddle(contents)
        else:
            first = numbers.block.first + used
            if count:
                _numbers(count).pack_into(numbers.memory, used * _CONTENT_SIZE, *contents)
                numbers.block.used = used + count
        if calls.block.used == CALLS_A_BLOCK:
            calls.extend()
        used = calls.block.used
        _put_call(calls.memory, used * _CALL_SIZE, first, count, step, site, signature)
        calls.block.used = used + 1

    def _straddle(self, contents: Sequence[int]) -> int:
        """Put contents of which only a part fits into this block; the number of the first."""
        table, first = self._contents, self._contents.count
        for number in contents:
            if table.block.used == CONTENTS_A_BLOCK:
                table.extend()
            CONTENT.pack_into(table.memory, table.block.used * CONTENT.size, number)
            table.block.used += 1
        return first

    def checkpoint(self) -> None:
        """Let plain h5py see all calls up to now, at most twice a second."""
        if self._file.is_mine and time.monotonic() >= self._due:
            with self.lock:
                self._save()

    def close(self, notes: Iterable[str] = ()) -> None:
        super().close(notes)
        self._is_open = False
        self._end_direct_writing()

    def _objects_for(self, place: int, header: RecordHeader) -> tuple[bytes, int]:
        tables = {
            table.kind: (table.places, table.count) for table in (self._rows, self._calls, self._contents)
        }
        return self._objects.encoded(place, header, tables, self._lines)

    def _rescue(self, reason: str) -> None:
        self._is_open = False
        self._end_direct_writing()
        self._objects.forget()
        super()._rescue(reason)
