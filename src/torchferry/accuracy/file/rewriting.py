"""Writes a dump of another tool as a record of ours: one file that holds all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torchferry.accuracy.file.background import memory_at
from torchferry.accuracy.file.reader import MappedRecord, Record
from torchferry.accuracy.file.saved_tensors import UnreadableTensorError
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Call, Kept, TensorRecord, figures_in
from torchferry.errors import InputError, not_writable
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.text import Text

Progress = Callable[[int, int], None]


def rewrite(record: Record, file: Path, progress: Progress | None = None) -> int:
    """Write the calls of a dump into a file, which appears whole or not at all; how many."""
    if isinstance(record, MappedRecord):
        raise InputError(
            Text(
                f"{record.path}: already a recording of TorchFerry; nothing to convert",
                f"{record.path}：已是 TorchFerry 的记录；无需转换",
            )
        )
    try:
        remove_leftovers(file.parent)
        with folder_aside(file.parent) as aside:
            made = aside.path / file.name
            failed = _write(record, made, progress)
            if failed:
                raise not_writable(file, failed)
            made.replace(file)
    except OSError as error:
        raise not_writable(file, error) from None
    return len(record.calls)


def _write(record: Record, file: Path, progress: Progress | None) -> str:
    """Why it could not be written whole; "": it was."""
    has_statistics = record.header.kept is Kept.STATISTICS
    written = _StatisticsFile(record, file) if has_statistics else _TensorFile(record, file)
    try:
        for done, call in enumerate(record.calls, 1):
            written.write(call)
            if progress is not None:
                progress(done, len(record.calls))
    finally:
        written.writer.close()
    return written.writer.failed


class _TensorFile:
    def __init__(self, record: Record, file: Path) -> None:
        self._record = record
        self.writer = RecordWriter(file, record.header)

    def write(self, call: Call) -> None:
        """Append a call."""
        inputs, outputs = (tuple(map(self._kept, side)) for side in (call.inputs, call.outputs))
        self.writer.write(replace(call, inputs=inputs, outputs=outputs, random=None))

    def _kept(self, tensor: TensorRecord) -> TensorRecord:
        if tensor.offset is None:
            return tensor
        try:
            return replace(tensor, offset=self.writer.append(self._record.raw(tensor)))
        except UnreadableTensorError as error:
            return replace(tensor, offset=None, unread=str(error))


class _StatisticsFile:
    def __init__(self, record: Record, file: Path) -> None:
        self.writer = StatisticsWriter(file, record.header)

    def write(self, call: Call) -> None:
        """Append a call."""
        site = self.writer.site(call.operator, call.phase, call.model, call.module, call.place, call.node)
        plain = (
            [replace(each, content=0, statistics=None) for each in side]
            for side in (call.inputs, call.outputs)
        )
        signature = self.writer.signature(call.arguments, encoded_tensors(*plain), call.results)
        contents = [self._row(each) for each in (*call.inputs, *call.outputs)]
        self.writer.call(call.step, site, signature, contents)

    def _row(self, tensor: TensorRecord) -> int:
        if tensor.statistics is None:
            return 0
        number, address = self.writer.row()
        memory_at(address, ROW.size, writable=True)[:] = ROW.pack(*figures_in(tensor.statistics))
        return number
