"""Cuts the JSON text of a trace into pieces of whole events, whatever the size of the file and the state of its end."""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from torchferry.errors import InputError, not_readable
from torchferry.text import Text, then

_FOREIGN = (
    (b"PK\x03\x04", Text("a zip archive or a PyTorch checkpoint", "zip 归档或 PyTorch checkpoint")),
    (b"\x89HDF", Text("an HDF5 file", "HDF5 文件")),
    (b"SQLite format 3", Text("an SQLite database", "SQLite 数据库")),
    (b"\x80\x02", Text("a pickle", "pickle 文件")),
    (b"\x80\x03", Text("a pickle", "pickle 文件")),
    (b"\x80\x04", Text("a pickle", "pickle 文件")),
    (b"\x80\x05", Text("a pickle", "pickle 文件")),
    (b"\x89PNG", Text("an image", "图片")),
    (b"%PDF", Text("a PDF document", "PDF 文档")),
    (b"\x7fELF", Text("a program or library", "程序或库")),
    (b"BZh", Text("a bzip2 archive", "bzip2 归档")),
    (b"\xfd7zXZ", Text("an xz archive", "xz 归档")),
    (b"\x28\xb5\x2f\xfd", Text("a zstd archive", "zstd 归档")),
)
_WHAT_TO_GIVE = Text(
    "give what torch.profiler's export_chrome_trace() wrote (.json, .json.gz), or a file with the table of "
    "key_averages().table()",
    "请给出 torch.profiler 的 export_chrome_trace() 写入的文件（.json、.json.gz），或保存了 key_averages().table() 表格的文件",
)
EMPTY_FILE = Text("an empty file", "空文件")
OTHER_TEXT = Text("some other text", "其他文本")


def no_trace(path: Path, what_it_is: Text) -> InputError:
    """The error for a file that is something else."""
    said = Text("{path} is not a profiler trace but {what}", "{path} 不是 profiler 的 trace，而是{what}")
    return InputError(then(said.format(path=repr(str(path)), what=what_it_is), _WHAT_TO_GIVE))


def encoding(path: Path, start: bytes) -> str:
    """The encoding of a file that begins so; raises if it is no text."""
    if not start:
        raise no_trace(path, EMPTY_FILE)
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise no_trace(path, what)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"  # what a console on Windows writes when output is redirected
    if b"\0" in start[:4096]:
        raise no_trace(path, Text("a binary file", "二进制文件"))
    return "utf-8-sig"


# Unpacks gzip as far as it goes: all that a cut or damaged archive still holds.

GZIP = b"\x1f\x8b"
_WITH_HEADER = 31  # zlib's number for an archive with a header of gzip's
_PIECE = 1 << 16


class Unpacking:
    """Reads like a file; in the end it knows whether the archive was whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self.is_cut_short = False
        self._file = file
        self._archive = zlib.decompressobj(_WITH_HEADER)
        self._is_over = False

    def read(self, size: int) -> bytes:
        """So many bytes or some more; fewer only at the end."""
        pieces: list[bytes] = []
        while size > 0 and not self._is_over:
            pieces.append(self._next())
            size -= len(pieces[-1])
        return b"".join(pieces)

    def _next(self) -> bytes:
        packed = self._file.read(_PIECE)
        if not packed:
            self._is_over = True
            self.is_cut_short = not self._archive.eof
            return self._archive.flush()
        text = b""
        while packed:
            before = self._archive.copy()
            try:
                text += self._archive.decompress(packed)
            except zlib.error:
                self._is_over = self.is_cut_short = True
                return text + _up_to_the_damage(before, packed)
            packed = self._archive.unused_data if self._archive.eof else b""
            if not packed.startswith(GZIP):  # no other archive but filling
                break
            self._archive = zlib.decompressobj(_WITH_HEADER)
        return text


def unpacked(file: BufferedReader) -> BufferedReader | Unpacking:
    """The contents of a file; by them it is told whether it is packed, as files are renamed."""
    return Unpacking(file) if file.peek(len(GZIP)).startswith(GZIP) else file


def _up_to_the_damage(archive: zlib._Decompress, packed: bytes) -> bytes:
    found = []
    try:
        for position in range(len(packed)):
            found.append(archive.decompress(packed[position : position + 1]))
    except zlib.error:
        pass
    return b"".join(found)


BLOCK = 8 << 20
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_NEXT_EVENT = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|bp|id|args|dur)"\s*:)')
_OTHER_JSON = (
    (
        b"nodes",
        Text(
            "an execution trace (of ExecutionTraceObserver)", "执行 trace（由 ExecutionTraceObserver 生成）"
        ),
    ),
    (b"segments", Text("a memory snapshot", "内存快照")),
    (b"cells", Text("a notebook", "notebook")),
)
_NO_EVENTS = Text("another kind of JSON (without traceEvents)", "其他 JSON（没有 traceEvents）")
_WINDOW = 4096  # events are seldom longer: the last boundary is looked for in steps of this
_LONGEST_HEAD = 64 << 20
_LONGEST_BOUNDARY = 64
_LONGEST_LOOK = 1 << 16
_MOST_TRIES = 64
_BETWEEN = b" \t\r\n,"
_SEPARATORS = re.compile(r"[ \t\r\n,]*")


class Chunks:
    """Iterates over texts that each hold some whole events, divided by commas; knows afterwards what surrounded them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about: dict[str, Any] = {}  # the file's other keys
        self.is_object = False
        self.is_cut_short = False
        self._file: BufferedReader | None = None
        self._buffer = b""
        self._source: BufferedReader | Unpacking | codecs.StreamRecoder | None = None

    def __iter__(self) -> Iterator[bytes]:
        with self._open() as self._file:
            self._find_list()
            searched = 0
            while block := self._more():  # so that what is left in the end holds the file's other keys
                cut = _sure_boundary(self._buffer, searched)
                if cut:
                    yield self._buffer[:cut]
                    self._buffer = self._buffer[cut:].lstrip(_BETWEEN)
                searched = max(0, len(self._buffer) - _LONGEST_BOUNDARY)
                self._buffer += block
            yield from self._last()

    @property
    def position(self) -> int:
        """How many bytes of the file were read; to be asked between two chunks."""
        return self._file.tell() if self._file is not None and not self._file.closed else 0

    def _open(self) -> BufferedReader:
        try:
            return self.path.open("rb")
        except IsADirectoryError:
            raise InputError(
                Text(
                    f"{str(self.path)!r} is a folder; name the trace file in it",
                    f"{str(self.path)!r} 是文件夹；请给出其中的 trace 文件",
                )
            ) from None
        except OSError as error:
            raise not_readable(repr(str(self.path)), error) from None

    def _more(self) -> bytes:
        try:
            if self._source is None:
                assert self._file is not None
                if self._file.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    self._source = codecs.EncodedFile(self._file, "utf-8", "utf-16", "replace")
                else:
                    self._source = unpacked(self._file)
            block = self._source.read(BLOCK)
        except OSError as error:
            raise not_readable(repr(str(self.path)), error) from None
        if isinstance(self._source, Unpacking):
            self.is_cut_short |= self._source.is_cut_short
        return block

    def _find_list(self) -> None:
        self._buffer = self._more().removeprefix(codecs.BOM_UTF8)
        encoding(self.path, self._buffer)
        first = self._buffer.lstrip()[:1]
        if first == b"[":
            self._buffer = self._buffer.lstrip()[1:]
            return
        if first != b"{":
            raise no_trace(self.path, OTHER_TEXT)
        self.is_object = True
        while (found := _LIST.search(self._buffer)) is None:
            block = self._more()
            if not block or len(self._buffer) > _LONGEST_HEAD:
                raise no_trace(self.path, self._other_json())
            self._buffer += block
        self.about = _object(self._buffer[: found.end()] + b"]}")
        self._buffer = self._buffer[found.end() :]

    def _last(self) -> Iterator[bytes]:
        """What is left: the last events, the end of the list, the file's other keys; or a piece of an event."""
        text = self._buffer.strip()
        cut = _last_boundary(text)
        tail = _Tail(text[cut:])
        step = 1
        while cut and tail.holds_others:  # that boundary lay between objects of the file's other keys
            cut = _last_boundary(text, until=max(0, cut - step))
            tail = _Tail(text[cut:])
            step *= 2
        if cut:
            yield text[:cut]
        if tail.events:
            yield tail.events
        if not tail.rest.startswith(b"]"):
            self.is_cut_short = True
        elif self.is_object:
            rest = tail.rest[1:].strip()
            self.about.update(_object(b"{" + rest.lstrip(b",")))
            self.is_cut_short |= not rest.endswith(b"}")

    def _other_json(self) -> Text:
        """What an object without events is."""
        known = (what for key, what in _OTHER_JSON if re.search(rb'"%b"\s*:' % key, self._buffer))
        try:
            is_object = isinstance(json.loads(self._buffer), dict)
        except (ValueError, RecursionError):
            is_object = False
        return next(
            known,
            _NO_EVENTS if is_object else Text("damaged JSON, or some other text", "损坏的 JSON 或其他文本"),
        )


class _Tail:
    """The text from an event on to the end of the file."""

    def __init__(self, tail: bytes, only_first: bool = False) -> None:
        text = tail.decode("utf-8", "surrogateescape")
        decoder = json.JSONDecoder(strict=False)
        position = after_separators(text, 0)
        first = end = position
        self.holds_others = False  # something that is no event
        while text[position : position + 1] == "{":
            try:
                event, end = decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                break
            self.holds_others |= "ph" not in event
            position = after_separators(text, end)
            if only_first:
                break
        self.events = text[first:end].encode("utf-8", "surrogateescape")
        self.rest = text[position:].encode("utf-8", "surrogateescape")


def after_separators(text: str, position: int) -> int:
    """Where the next value begins."""
    found = _SEPARATORS.match(text, position)
    return found.end() if found else position


def _last_boundary(text: bytes, since: int = 0, until: int | None = None) -> int:
    """Where the last event that is certainly whole ends; 0: nowhere."""
    stop = len(text) if until is None else until
    last = stop
    while stop > since:
        start = max(since, stop - _WINDOW)
        near = _NEXT_EVENT.finditer(text, start, min(len(text), stop + _LONGEST_BOUNDARY))
        ends = [found.start() + 1 for found in near if found.start() < last]
        if ends:
            return ends[-1]
        stop = start
    return 0


def _sure_boundary(text: bytes, since: int) -> int:
    """A boundary near the end that an event follows: objects in an event's own lists may look like events."""
    cut = _last_boundary(text, since)
    unsure = 0
    for _ in range(_MOST_TRIES):
        if not cut:
            break
        follows = _Tail(text[cut : cut + _LONGEST_LOOK], only_first=True)
        if follows.events and not follows.holds_others:
            return cut
        if not follows.events:  # it is longer than what there is to look at
            unsure = unsure or cut
        cut = _last_boundary(text, since, until=cut - 1)
    return unsure or cut


def _object(text: bytes) -> dict[str, Any]:
    """The keys of an object beside its events."""
    try:
        read = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return {}
    read.pop("traceEvents", None)
    return read if isinstance(read, dict) else {}


def single_events(chunk: bytes) -> list[bytes]:
    """The events of a chunk one by one, for chunks that can't be decoded as a whole."""
    pieces: list[bytes] = []
    start = 0
    for found in _NEXT_EVENT.finditer(chunk):
        pieces.append(chunk[start : found.start() + 1])
        start = found.end()
    pieces.append(chunk[start:])
    return pieces
