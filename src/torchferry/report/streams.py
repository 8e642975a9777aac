"""Standard output as reports are written to it: characters that it can't say, readers that have seen enough."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print; a reader who has seen enough, as in `ferry scan . | head`, does not change the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Let nothing be flushed to a closed pipe or a full disk at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_text(stream: TextIO, text: str) -> None:
    """Write what the stream's encoding has no characters for as question marks, rather than fail."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def write_bytes(stream: TextIO, pieces: Iterable[bytes]) -> None:
    """Write bytes as they are; to a stream without any, the text that they are."""
    binary = getattr(stream, "buffer", None)
    stream.flush()
    for piece in pieces:
        if binary is None:
            stream.write(piece.decode("utf-8"))
        else:
            binary.write(piece)
    (binary or stream).flush()
