"""Finds the lines that speak of operators in logs of any size: blocks of bytes, searched before anything is decoded."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

BLOCK = 1 << 20
LONGEST = 1 << 16  # a line beyond this is no log line but other bytes
Reader = io.BufferedReader | gzip.GzipFile
Progress = Callable[[int], None]  # is told how many bytes of the file were read since the last call


class Hit(NamedTuple):
    """A line with one of the marks, without its end."""

    mark: int  # which one
    at: int  # where behind the mark's end the line goes on
    line: bytes


def hits(file: Path, marks: Sequence[bytes], progress: Progress | None = None) -> Iterator[Hit]:
    """The lines of a file that have one of the marks, in order. Raises OSError; a torn archive gives what it has."""
    with open(file, "rb") as raw:
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        yield from _in_stream(gzip.GzipFile(fileobj=raw) if packed else raw, raw, marks, progress)


def _in_stream(
    stream: Reader, raw: BinaryIO, marks: Sequence[bytes], progress: Progress | None
) -> Iterator[Hit]:
    rest = b""
    told = 0
    while True:
        block = _next_block(stream)
        if progress is not None:
            now = _position(raw)
            progress(now - told)
            told = now
        if not block:
            break
        data = rest + block
        end = data.rfind(b"\n") + 1
        yield from _in_block(data, end, marks)
        rest = data[max(end, len(data) - LONGEST) :]
    yield from _in_block(rest, len(rest), marks)


def _position(raw: BinaryIO) -> int:
    try:
        return raw.tell()
    except OSError:  # a pipe has none
        return 0


def _next_block(stream: Reader) -> bytes:
    try:
        return stream.read1(BLOCK)  # what there is: `read` loses it where the archive is torn
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""  # an archive that was not written to its end


def _in_block(data: bytes, end: int, marks: Sequence[bytes]) -> Iterator[Hit]:
    places = sorted(
        (place, number) for number, mark in enumerate(marks) for place in _places(data, end, mark)
    )
    for place, number in places:
        start = data.rfind(b"\n", 0, place) + 1
        stop = data.find(b"\n", place)
        line = data[start : end if stop < 0 else stop]
        if len(line) <= LONGEST:
            yield Hit(number, place - start + len(marks[number]), line.rstrip(b"\r"))


def _places(data: bytes, end: int, mark: bytes) -> Iterator[int]:
    place = data.find(mark, 0, end)
    while place >= 0:
        yield place
        place = data.find(mark, place + len(mark), end)
