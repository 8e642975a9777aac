"""Finds the lines that may speak of errors in logs of any size: words are searched in blocks, nothing is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Every error has one of these in its line or in one near to it, in capitals or not. Few, for each costs time.
TRIGGERS = (b"error", b"fail", b"warn", b"traceback")
_LETTERS = frozenset(b"".join(TRIGGERS) + b"".join(TRIGGERS).upper())
_OTHER_BYTES = bytes(byte for byte in range(256) if byte not in _LETTERS)
_LOWERED = bytes(range(256)).lower()
# The beginning and the end are looked at line by line: a message without such a word (a shell's `Killed`, a pasted
# table) stands there.
WHOLE = 1 << 16
LONGEST_PIECE = 1 << 20  # of a line without end
_CLIP_BEFORE, _CLIP_AFTER = 1000, 3000  # what is kept of a longer line, around the word
_CONTEXT = 1 << 13
_ENDS = re.compile(rb"[\r\n]+")


class RawLine(NamedTuple):
    """A line without its end, and what stands before it."""

    number: int  # from 1 on
    line: bytes
    tail: bytes  # of the block before
    data: bytes
    start: int

    def before(self, count: int) -> list[bytes]:
        """The lines before it, as far as they are still there."""
        earlier = self.data[max(0, self.start - _CONTEXT) : self.start]
        if len(earlier) < _CONTEXT:
            earlier = self.tail + earlier
        lines = _ENDS.split(earlier.rstrip(b"\r\n"))
        return [line for line in lines if line][-count:]


class Scanner:
    """Goes through a log once."""

    def __init__(self) -> None:
        self._following = 0
        self._whole = WHOLE  # bytes from here on of which every line is given
        self._tail = b""
        self.lines = 0  # read so far
        self.bytes = 0

    def follow(self, count: int) -> None:
        """Also give at least so many lines that come now, whatever is in them."""
        self._following = max(self._following, count)

    def interesting(self, blocks: Iterable[bytes]) -> Iterator[RawLine]:
        """The lines with one of the words, and those that the reader wants to follow."""
        rest = b""
        for block in blocks:
            self.bytes += len(block)
            rest += block
            end = self._end_of_part(rest)
            if end:
                yield from self._in(rest[:end])
                self._tail = rest[max(0, end - _CONTEXT) : end]
                rest = rest[end:]
        self._whole = len(rest)
        yield from self._in(rest)
        self.lines += bool(rest) and not rest.endswith(b"\n")

    def _end_of_part(self, data: bytes) -> int:
        """How much can be looked at: whole lines, without what may be the log's end; 0 for nothing yet."""
        limit = len(data) - WHOLE
        end = data.rfind(b"\n", 0, max(0, limit)) + 1
        if end or limit < LONGEST_PIECE:
            return end
        return max(data.rfind(b"\r", 0, limit), data.rfind(b" ", 0, limit)) + 1 or limit

    def _in(self, data: bytes) -> Iterator[RawLine]:
        end = len(data)
        if not self._following and not self._whole and not _may_have_any(data):
            self.lines += data.count(b"\n")
            return
        lowered = data.lower()
        places = [lowered.find(trigger) for trigger in TRIGGERS]
        at = counted = 0
        while at < end:
            if self._following or at < self._whole:
                hit = start = at
            else:
                hit = _next(lowered, places, at)
                if hit < 0:
                    break
                start = data.rfind(b"\n", at, hit) + 1 or at
                start = data.rfind(b"\r", start, hit) + 1 or start
            stop, past = _end_of_line(data, hit, end)
            self.lines += data.count(b"\n", counted, start)
            counted = start
            self._following = max(0, self._following - 1)
            at = past
            if stop > start:
                line = data[max(start, hit - _CLIP_BEFORE) : min(stop, hit + _CLIP_AFTER)]
                yield RawLine(self.lines + 1, line, self._tail, data, start)
        self._whole = max(0, self._whole - end)
        self.lines += data.count(b"\n", counted, end)


def _may_have_any(data: bytes) -> bool:
    """Whether one of the words may be in it: without the bytes that no word has, there is far less to search."""
    squeezed = data.translate(_LOWERED, _OTHER_BYTES)
    return any(trigger in squeezed for trigger in TRIGGERS)


def _next(lowered: bytes, places: list[int], at: int) -> int:
    """The first place of any word from here on; -1 if there is none."""
    first = -1
    for number, place in enumerate(places):
        if 0 <= place < at:
            place = places[number] = lowered.find(TRIGGERS[number], at)
        if place >= 0 and (first < 0 or place < first):
            first = place
    return first


def _end_of_line(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the line ends, and where the next one begins; a progress bar's carriage return ends a line, too."""
    stop = data.find(b"\n", start, end)
    stop = end if stop < 0 else stop
    returned = data.find(b"\r", start, stop)
    if returned < 0:
        return stop, stop + 1
    return returned, returned + (2 if returned + 1 == stop else 1)
