"""Writes a record of statistics: tables that lie in mapped memory of the file, so that a call costs a microsecond.

What was put into a table is in the file even if the process is killed the next moment.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from torchferry.accuracy.file.call_json import encoded_header, encoded_tensor, encoded_value
from torchferry.accuracy.file.chunks import ChunkFile, Kind, payload_after
from torchferry.accuracy.file.groups import with_notes
from torchferry.accuracy.file.table_objects import TableObjects
from torchferry.accuracy.file.tables import (
    CALL_ROW,
    CALLS_A_BLOCK,
    CONTENT,
    CONTENTS_A_BLOCK,
    ROW,
    ROWS_A_BLOCK,
)
from torchferry.accuracy.file.writer import index_payload
from torchferry.accuracy.model import Header, TensorRecord, Value

_SECONDS = 0.5  # between checkpoints
_ROW_SIZE, _CONTENT_SIZE, _CALL_SIZE = ROW.size, CONTENT.size, CALL_ROW.size
_put_call = CALL_ROW.pack_into


class _Table:
    """Rows in blocks of the file that are mapped; all stay mapped, since another thread may still fill a row."""

    def __init__(self, file: ChunkFile, kind: Kind, row_size: int, rows_a_block: int) -> None:
        self._file, self.kind = file, kind
        self.row_size, self.rows_a_block = row_size, rows_a_block
        self.places: list[int] = []  # of the blocks, in the file
        self._mapped: list[mmap.mmap] = []
        self.memory: mmap.mmap | bytearray = bytearray(rows_a_block * row_size)
        self._scratch = self.memory  # where rows go that no file takes
        self.address = _address(self.memory)
        self.first = 0  # the number of the last block's first row
        self.used = rows_a_block  # of the last block

    @property
    def count(self) -> int:
        """Rows in all blocks."""
        return self.first + self.used if self.places else 0

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
        self.first = len(self.places) * self.rows_a_block
        self.places.append(place)
        self._mapped.append(memory)
        self.memory, self.used = memory, 0
        self.address = _address(memory)

    def use_scratch(self) -> None:
        """Nothing goes into the file any more."""
        self.memory, self.address, self.used = self._scratch, _address(self._scratch), 0


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


class StatisticsWriter:
    """Appends calls, and figures of their tensors, to tables. Where several threads do so, each holds `lock`."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._header = header
        self._file = ChunkFile(path)
        self._file.rescue = self._rescue
        self.lock = self._file.lock
        self._is_open = True
        self._rows = _Table(self._file, Kind.ROWS, ROW.size, ROWS_A_BLOCK)
        self._calls = _Table(self._file, Kind.CALLS, CALL_ROW.size, CALLS_A_BLOCK)
        self._contents = _Table(self._file, Kind.CONTENTS, CONTENT.size, CONTENTS_A_BLOCK)
        self._sites: dict[tuple[str, ...], int] = {}
        self._signatures: dict[str, int] = {}
        self._lines: dict[Kind, list[bytes]] = {Kind.SITES: [], Kind.SIGNATURES: []}
        self._objects = TableObjects()
        self._due = 0.0
        start = encoded_header(header).encode()
        self._file.add(Kind.HEADER, start, len(start))
        self._save()

    @property
    def failed(self) -> str:
        """Why nothing more is written; "" all is well."""
        return self._file.failed

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._file.end

    def row(self) -> tuple[int, int]:
        """The number of the next content, and where in memory its figures go; 0 if no file takes it."""
        table = self._rows
        if self._file.is_forked:
            return 0, self._rows_scratch()
        if table.used == ROWS_A_BLOCK:
            table.extend()
        if not self._is_open:
            return 0, self._rows_scratch()
        used = table.used
        table.used = used + 1
        return table.first + used + 1, table.address + used * _ROW_SIZE

    def _rows_scratch(self) -> int:
        """The first row of memory that no file has."""
        self._rows.use_scratch()
        return self._rows.address

    def site(self, operator: str, phase: str, model: str, module: str, place: str, node: str) -> int:
        """The number of a place in the program."""
        key = (operator, phase, model, module, place, node)
        number = self._sites.get(key)
        if number is None:
            number = self._sites[key] = self._put_line(Kind.SITES, encoded_value(key))
        return number

    def signature(
        self,
        arguments: Sequence[tuple[str, Value]],
        inputs: Iterable[TensorRecord],
        outputs: Iterable[TensorRecord],
        results: Value,
    ) -> int:
        """The number of what calls of one sort have in common."""
        return self.signature_with(arguments, encoded_tensors(inputs, outputs), results)

    def signature_with(self, arguments: Sequence[tuple[str, Value]], tensors: str, results: Value) -> int:
        """The same, for tensors that were encoded already."""
        line = (
            f'{{"arguments":{encoded_value(tuple(arguments))},{tensors},"results":{encoded_value(results)}}}'
        )
        number = self._signatures.get(line)
        if number is None:
            number = self._signatures[line] = self._put_line(Kind.SIGNATURES, line)
        return number

    def _put_line(self, kind: Kind, line: str) -> int:
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
        used = numbers.used
        if used + count > CONTENTS_A_BLOCK:
            first = self._straddle(contents)
        else:
            first = numbers.first + used
            if count:
                _numbers(count).pack_into(numbers.memory, used * _CONTENT_SIZE, *contents)
                numbers.used = used + count
        if calls.used == CALLS_A_BLOCK:
            calls.extend()
        _put_call(calls.memory, calls.used * _CALL_SIZE, first, count, step, site, signature)
        calls.used += 1

    def _straddle(self, contents: Sequence[int]) -> int:
        """Put contents of which only a part fits into this block; the number of the first."""
        table, first = self._contents, self._contents.count
        for number in contents:
            if table.used == CONTENTS_A_BLOCK:
                table.extend()
            CONTENT.pack_into(table.memory, table.used * CONTENT.size, number)
            table.used += 1
        return first

    def checkpoint(self) -> None:
        """Let plain h5py see all calls up to now, at most twice a second."""
        if self._file.is_mine and time.monotonic() >= self._due:
            with self.lock:
                self._save()

    def close(self, notes: Iterable[str] = ()) -> None:
        """End the file."""
        if self._file.is_mine:
            with self.lock:
                self._save_all(notes, complete=True)
        self._is_open = False
        self._file.close()

    def _save(self) -> None:
        data, place = self._encoded(self._header)
        self._file.add(Kind.GROUPS, data, len(data))
        if self._file.flush():
            self._file.point_to(place, self._file.end)
        self._due = time.monotonic() + _SECONDS

    def _save_all(self, notes: Iterable[str], complete: bool) -> None:
        header = with_notes(self._header, notes, complete)
        data, place = self._encoded(header)
        self._file.add(Kind.GROUPS, data, len(data))
        index = index_payload(encoded_header(header, complete=complete).encode(), ())
        start = self._file.add(Kind.INDEX, index, len(index))
        if self._file.flush():
            self._file.point_to(place, self._file.end, start, len(index))

    def _encoded(self, header: Header) -> tuple[bytes, int]:
        tables = {
            table.kind: (table.places, table.count) for table in (self._rows, self._calls, self._contents)
        }
        return self._objects.encoded(payload_after(self._file.end), header, tables, self._lines)

    def _rescue(self, reason: str) -> None:
        """Let the file lead to all that is in it."""
        self._is_open = False
        self._objects.forget()
        self._save_all((f"cut off: {reason}",), complete=False)
