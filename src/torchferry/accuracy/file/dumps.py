"""Dump files of an Ascend runtime, real or simulated, as a record: one file a call, or a folder of them."""

from __future__ import annotations

import contextlib
import math
import mmap
import re
from collections.abc import Iterator
from pathlib import Path

from torchferry.accuracy.dump.message import Described, DumpHead, read_head
from torchferry.accuracy.file.reader import LazyCalls, Record
from torchferry.accuracy.model import (
    INPUT,
    OUTPUT,
    SIZES,
    Call,
    Kept,
    RandomState,
    RecordHeader,
    TensorRecord,
    TensorRef,
)
from torchferry.errors import InputError
from torchferry.readiness.cases.model import contiguous

_FILE = re.compile(r"[^.]+\..+\.\d+\.\d+\.\d+")  # type.name.task.stream.microseconds
_NOTE = "a dump of a runtime"


def open_dump(path: Path) -> DumpRecord | None:
    """A dump file, or a folder with some; None: it is no such thing."""
    files = [path]
    if path.is_dir():
        found = (file for file in path.rglob("*") if _FILE.fullmatch(file.name))
        files = sorted((file for file in found if file.is_file() and not file.is_symlink()), key=_time)
    dumped = []
    for file in files:
        with contextlib.suppress(OSError, ValueError), _mapped(file) as data:
            dumped.append((file, read_head(data)))
    return DumpRecord(path, dumped) if dumped else None


def _time(file: Path) -> tuple[int, int, str]:
    _, task, _, time = file.name.rsplit(".", 3)
    return int(time), int(task), file.name


@contextlib.contextmanager
def _mapped(file: Path) -> Iterator[memoryview]:
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        view = memoryview(memory)
        try:
            yield view
        finally:
            view.release()


class DumpRecord(Record):
    """A record of dump files. A tensor's `content` counts the tensors of all of them."""

    def __init__(self, path: Path, dumped: list[tuple[Path, DumpHead]]) -> None:
        self._dumped = dumped
        self._places: dict[int, tuple[Path, Described]] = {}
        self._first: list[int] = []  # content of the first tensor of each call
        for file, head in dumped:
            self._first.append(len(self._places) + 1)
            for tensor in (*head.inputs, *head.outputs):
                self._places[len(self._places) + 1] = (file, tensor)
        header = RecordHeader(Kept.TENSORS, "", "", "", notes=(_NOTE,))
        super().__init__(path, header, LazyCalls(len(dumped), self._call))

    def file_of(self, index: int) -> Path:
        """The file of a call, by its place among the calls."""
        return self._dumped[index][0]

    def _call(self, index: int) -> Call:
        (file, head), content = self._dumped[index], self._first[index]
        inputs = tuple(_recorded(INPUT, at, each, content + at) for at, each in enumerate(head.inputs))
        content += len(inputs)
        outputs = tuple(_recorded(OUTPUT, at, each, content + at) for at, each in enumerate(head.outputs))
        arguments = tuple((f"{INPUT}_{at}", TensorRef(at)) for at in range(len(inputs)))
        name = head.name or file.name.partition(".")[0]
        results = tuple(TensorRef(at) for at in range(len(outputs)))
        return Call(
            index + 1, f"aten::{name}", step=1, phase="", arguments=arguments, inputs=inputs, outputs=outputs,
            results=results[0] if len(results) == 1 else results or None,
        )  # fmt: skip

    def raw(self, tensor: TensorRecord) -> memoryview:
        place = self._places.get(tensor.content)
        if place is None or tensor.offset is None:
            raise InputError(f"{self.path}: the contents of {tensor.name} can't be read: {tensor.unread}")
        file, described = place
        try:
            with _mapped(file) as data:
                found = bytes(data[described.offset : described.offset + described.nbytes])
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: can't be read: {error}") from None
        if len(found) < tensor.nbytes:
            raise InputError(f"{file}: is damaged: {tensor.name} is not in the file")
        return memoryview(found)

    def size(self) -> int:
        return sum(file.stat().st_size for file, _ in self._dumped)

    def state(self, random: RandomState) -> bytes:
        raise InputError(f"{self.path}: is a dump, which holds no states of generators")

    def close(self) -> None:
        self.calls = ()


def _recorded(side: str, at: int, tensor: Described, content: int) -> TensorRecord:
    """Its shape as it lies in the file; that of a runtime's own layout is no other one."""
    shape = tensor.shape
    is_whole = bool(tensor.dtype) and math.prod(shape) * SIZES[tensor.dtype] == tensor.nbytes
    return TensorRecord(
        f"{side}/{side}_{at}",
        tensor.dtype or "uint8",
        shape,
        contiguous(shape),
        "",
        content=content,
        offset=0 if is_whole else None,
        unread="" if is_whole else "a dtype or size that is not known here",
    )
