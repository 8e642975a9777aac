"""Finds the lines that speak of operators in logs of any size: blocks of bytes, searched before anything is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchferry.logs.blocks import Progress, blocks_of_file

LONGEST = 1 << 16  # a line beyond this is no log line but other bytes


class Hit(NamedTuple):
    """A line with one of the marks, without its end."""

    mark: int  # which one
    at: int  # where behind the mark's end the line goes on
    line: bytes


def hits(file: Path, marks: Sequence[bytes], progress: Progress | None = None) -> Iterator[Hit]:
    """The lines of a file that have one of the marks, in order. Raises OSError; a torn archive gives what it has."""
    rest = b""
    for block in blocks_of_file(file, progress):
        data = rest + block
        end = data.rfind(b"\n") + 1
        yield from _in_block(data, end, marks)
        rest = data[max(end, len(data) - LONGEST) :]
    yield from _in_block(rest, len(rest), marks)


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
