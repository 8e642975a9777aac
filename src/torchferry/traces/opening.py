"""Opens a file that should be a trace: unpacks, decodes, and says what it is if it is none."""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from torchferry.errors import InputError

CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's number for an archive with a header of gzip's
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive or a PyTorch checkpoint"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x02", "a pickle"),
    (b"\x80\x03", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
    (b"\x89PNG", "an image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program or library"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
)
_WHAT_TO_GIVE = (
    "give what torch.profiler's export_chrome_trace() wrote (.json, .json.gz), or the table of "
    "key_averages().table() saved in a file"
)


def no_trace(path: Path, what_it_is: str) -> InputError:
    """The error for a file that is something else."""
    return InputError(f"{str(path)!r} is no profiler trace but {what_it_is}: {_WHAT_TO_GIVE}")


class Text:
    """The text of a trace, read piece by piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_short = False  # the archive ends too early
        self._pieces: Iterator[str] = self._read()

    def more(self) -> str:
        """The next piece; "" at the end."""
        return next(self._pieces, "")

    def put_back(self, piece: str) -> Text:
        """Let a piece be the next again."""
        self._pieces = chain((piece,), self._pieces)
        return self

    def _read(self) -> Iterator[str]:
        decoder: codecs.IncrementalDecoder | None = None
        with _open(self.path) as file:
            for piece in self._chunks(file):
                if decoder is None:
                    decoder = codecs.getincrementaldecoder(_encoding(self.path, piece))("replace")
                if text := decoder.decode(piece):
                    yield text
        if decoder is None:
            raise no_trace(self.path, "an empty file")

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            start = file.read(CHUNK)
            # by its contents: files are renamed, and browsers unpack without telling
            is_packed = start.startswith(_GZIP)
            whole = chain((start,), iter(partial(file.read, CHUNK), b""))
            yield from self._unpacked(whole) if is_packed else filter(None, whole)
        except OSError as error:
            raise InputError(f"can't read {str(self.path)!r}: {error.strerror or error}") from error

    def _unpacked(self, packed: Iterator[bytes]) -> Iterator[bytes]:
        """What can be unpacked: gzip's own reader gives nothing of the last piece if the archive ends too early."""
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        for piece in packed:
            rest = piece
            while rest:
                if unpacker.eof:  # archives can be strung together
                    unpacker = zlib.decompressobj(_GZIP_WINDOW)
                try:
                    unpacked = unpacker.decompress(rest, CHUNK)
                except zlib.error:
                    self.cut_short = True
                    return
                if unpacked:
                    yield unpacked
                rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        self.cut_short = not unpacker.eof


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder: name the trace file in it")
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"can't read {str(path)!r}: {error.strerror or error}") from error


def _encoding(path: Path, start: bytes) -> str:
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise no_trace(path, what)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"  # what a console on Windows writes when output is redirected
    if b"\0" in start[:4096]:
        raise no_trace(path, "a binary file")
    return "utf-8-sig"


# The events of a trace in JSON, one after the other, whatever the size of the file and the state of
# its end.

_EVENTS = "traceEvents"
_SPACE = re.compile(r"[\s,]*")
# The beginning of another event; objects inside an event (`args`) do not begin with these keys.
_NEXT_EVENT = re.compile(r'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|ts|bp)"\s*:)')
# Numbers stay text: a time in microseconds since 1970 with nanoseconds does not fit a float.
_DECODER = json.JSONDecoder(strict=False, parse_float=str)
_LONGEST_WORD = 16  # of JSON, cut in the middle: -Infinity, \\ud83d\\ude00
_OTHER_JSON = (
    ("nodes", "an execution trace (of ExecutionTraceObserver)"),
    ("segments", "a snapshot of memory"),
    ("cells", "a notebook"),
)


class JsonEvents:
    """Iterates over the events; afterwards says what else the file held, and what was wrong with it."""

    def __init__(self, text: Text) -> None:
        self.about: dict[str, Any] = {}  # the other keys of the file, as far as they come before the events
        self.is_object = False  # the list of events is one of several keys
        self.is_cut_short = False
        self.damaged = 0  # events that could not be read
        self._text = text
        self._buffer = ""
        self._position = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        first = self._peek()
        if first == "{":
            self.is_object = True
            self._position += 1
            try:
                found = self._find_events()
            except (_CutShortError, _DamagedError):
                raise no_trace(self._text.path, "damaged JSON, or some other text") from None
            if not found:
                raise no_trace(self._text.path, self._what_else())
        elif first != "[":
            raise no_trace(self._text.path, "some other text")
        self._position += 1
        for event in self._values():
            if isinstance(event, dict):
                yield event
            else:
                self.damaged += 1
        self.is_cut_short |= self._text.cut_short

    def _find_events(self) -> bool:
        """Go to the list of events, past the keys before it; False if there is none."""
        while self._peek() == '"':
            key = self._value()
            if self._peek() != ":":
                return False
            self._position += 1
            if key == _EVENTS:
                return self._peek() == "["
            if self._peek() == "":
                raise _CutShortError
            self.about[str(key)] = self._value()
        return False

    def _values(self) -> Iterator[Any]:
        while True:
            following = self._peek()
            if following == "]":
                return
            if following == "":
                self.is_cut_short = True
                return
            try:
                yield self._value()
            except _CutShortError:
                self.is_cut_short = True
                return
            except _DamagedError:
                self.damaged += 1

    def _peek(self) -> str:
        """The next character that means something; "" at the end."""
        while True:
            found = _SPACE.match(self._buffer, self._position)
            self._position = found.end() if found else self._position
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._read_on(1):
                return ""

    def _value(self) -> Any:
        pieces = 1  # doubled each time, so that a value of any length is tried a few times only
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._position)
            except (ValueError, RecursionError) as error:
                if _is_incomplete(error, self._buffer) and self._read_on(pieces):
                    pieces *= 2
                    continue
                following = _NEXT_EVENT.search(self._buffer, self._position)
                if following:
                    self._position = following.end()
                    raise _DamagedError from None
                if not self._read_on(pieces):
                    raise _CutShortError from None
                pieces *= 2
            else:
                self._position = end
                return value

    def _read_on(self, pieces: int) -> bool:
        read = [piece for piece in (self._text.more() for _ in range(pieces)) if piece]
        self._buffer = self._buffer[self._position :] + "".join(read)
        self._position = 0
        return bool(read)

    def _what_else(self) -> str:
        for key, what in _OTHER_JSON:
            if key in self.about:
                return what
        return "JSON of another kind (it has no traceEvents)"


def _is_incomplete(error: Exception, buffer: str) -> bool:
    """Whether the value may just go on after what has been read."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(buffer) - _LONGEST_WORD


class _CutShortError(Exception):
    """The file ends in the middle of a value."""


class _DamagedError(Exception):
    """A value is no JSON; the next one has been found."""
