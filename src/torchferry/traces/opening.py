"""Says what a file is that is no trace; unpacks and decodes the text of one that holds a printed table."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

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


class TraceText:
    """The text of a trace, read piece by piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_short = False  # the archive ends too early
        self._pieces: Iterator[str] = self._read()

    def more(self) -> str:
        """The next piece; "" at the end."""
        return next(self._pieces, "")

    def put_back(self, piece: str) -> TraceText:
        """Let a piece be the next again."""
        self._pieces = chain((piece,), self._pieces)
        return self

    def _read(self) -> Iterator[str]:
        decoder: codecs.IncrementalDecoder | None = None
        with _open(self.path) as file:
            for piece in self._chunks(file):
                if decoder is None:
                    decoder = codecs.getincrementaldecoder(encoding(self.path, piece))("replace")
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


def encoding(path: Path, start: bytes) -> str:
    """Of a file that begins so; raises if it is no text."""
    if not start:
        raise no_trace(path, "an empty file")
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise no_trace(path, what)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"  # what a console on Windows writes when output is redirected
    if b"\0" in start[:4096]:
        raise no_trace(path, "a binary file")
    return "utf-8-sig"
