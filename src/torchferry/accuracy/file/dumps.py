"""Dump files of an Ascend runtime, real or simulated, as a record: one file a call, or a folder of them."""

from __future__ import annotations

import contextlib
import csv
import math
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
from torchferry.errors import InputError, not_readable
from torchferry.readiness.cases.model import contiguous
from torchferry.text import Text

# type.name.task.stream.microseconds; older runtimes have no stream, newer ones up to four numbers more
_FILE = re.compile(r"(?P<type>[^.]+)\..+?(?P<numbers>(?:\.\d+){2,7})")
_NOT_OPERATORS = "Opdebug"  # files that tell of overflows
_MAPPING = "mapping.csv"  # names that are too long for a file, by the number that the file has instead
_NOTE = "a dump of a runtime"


def open_dump(path: Path) -> DumpRecord | None:
    """A dump file, or a folder with some; None: it is no such thing."""
    named = [(path, path.name)]
    if path.is_dir():
        named = sorted(_named_files(path), key=lambda each: (*_time(each[1]), each[0]))
    dumped = []
    for file, name in named:
        with contextlib.suppress(OSError, ValueError), _mapped(file) as data:
            head = _head_in(data)
            if head is not None:
                dumped.append(_Dumped(file, _type_of(name) or head.name, head))
    return DumpRecord(path, dumped) if dumped else None


@dataclass(frozen=True)
class _Dumped:
    """A file, the type of its operator, and what it says."""

    file: Path
    kind: str
    head: DumpHead


def _type_of(name: str) -> str:
    match = _FILE.fullmatch(name)
    return match["type"] if match else ""


def _head_in(data: memoryview) -> DumpHead | None:
    """None: it is no dump. The error must be gone before the file is closed: it holds on to parts of it."""
    try:
        return read_head(data)
    except ValueError:
        return None


def _named_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of a folder that may be dumps, with the names that they should have."""
    for place in (folder, *(each for each in folder.rglob("*") if each.is_dir() and not each.is_symlink())):
        long_names = _long_names(place)
        for file in place.iterdir():
            name = long_names.get(file.name, file.name)
            match = _FILE.fullmatch(name)
            if match and match["type"] != _NOT_OPERATORS and file.is_file() and not file.is_symlink():
                yield file, name


def _long_names(folder: Path) -> dict[str, str]:
    try:
        with (folder / _MAPPING).open(encoding="utf-8", errors="replace", newline="") as file:
            return {row[0]: row[1] for row in csv.reader(file) if len(row) > 1}
    except (OSError, csv.Error):
        return {}


def _time(name: str) -> tuple[int, int, str]:
    """By its time, the largest of the numbers, then by its task, the first."""
    match = _FILE.fullmatch(name)
    numbers = [int(each) for each in match["numbers"].split(".")[1:]] if match else [0]
    return max(numbers), numbers[0], name


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

    def __init__(self, path: Path, dumped: list[_Dumped]) -> None:
        self._dumped = dumped
        self._places: dict[int, tuple[Path, Described]] = {}
        self._first: list[int] = []  # content of the first tensor of each call
        for each in dumped:
            self._first.append(len(self._places) + 1)
            for tensor in (*each.head.inputs, *each.head.outputs):
                self._places[len(self._places) + 1] = (each.file, tensor)
        header = RecordHeader(Kept.TENSORS, "", "", "", notes=(_NOTE,))
        super().__init__(path, header, LazyCalls(len(dumped), self._call))

    def file_of(self, index: int) -> Path:
        """The file of a call, by its place among the calls."""
        return self._dumped[index].file

    def _call(self, index: int) -> Call:
        dumped, content = self._dumped[index], self._first[index]
        head, name = dumped.head, dumped.kind or dumped.file.name
        inputs = tuple(_recorded(INPUT, at, each, content + at) for at, each in enumerate(head.inputs))
        content += len(inputs)
        outputs = tuple(_recorded(OUTPUT, at, each, content + at) for at, each in enumerate(head.outputs))
        arguments = tuple((f"{INPUT}_{at}", TensorRef(at)) for at in range(len(inputs)))
        results = tuple(TensorRef(at) for at in range(len(outputs)))
        return Call(
            index + 1, f"aten::{name}", step=1, phase="", node="" if head.name == name else head.name, arguments=arguments, inputs=inputs, outputs=outputs,
            results=results[0] if len(results) == 1 else results or None,
        )  # fmt: skip

    def raw(self, tensor: TensorRecord) -> memoryview:
        place = self._places.get(tensor.content)
        if place is None or tensor.offset is None:
            raise InputError(
                Text(
                    f"{self.path}: the contents of {tensor.name} can't be read: {tensor.unread}",
                    f"{self.path}：无法读取 {tensor.name} 的内容：{tensor.unread}",
                )
            )
        file, described = place
        try:
            with _mapped(file) as data:
                found = bytes(data[described.offset : described.offset + described.nbytes])
        except (OSError, ValueError) as error:
            raise not_readable(file, str(error)) from None
        if len(found) < tensor.nbytes:
            raise InputError(
                Text(
                    f"{file}: damaged: {tensor.name} is not in the file; dump it again",
                    f"{file}：已损坏：文件中没有 {tensor.name}；请重新 dump",
                )
            )
        return memoryview(found)

    def size(self) -> int:
        return sum(each.file.stat().st_size for each in self._dumped)

    def state(self, random: RandomState) -> bytes:
        raise InputError(
            Text(
                f"{self.path}: a dump, which holds no generator states; record with ferry record to have them",
                f"{self.path}：这是 dump，不含随机数生成器的状态；如需要请用 ferry record 记录",
            )
        )

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
