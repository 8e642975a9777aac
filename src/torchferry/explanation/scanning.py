"""Finds the lines that may speak of errors in logs of any size: words are searched in blocks, nothing is decoded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

# Every error has one of these in its line or in one near to it, in capitals or not. Few, for each costs time.
TRIGGERS = (b"error", b"fail", b"warn", b"traceback")
_LETTERS = frozenset(b"".join(TRIGGERS) + b"".join(TRIGGERS).upper())
_OTHER_BYTES = bytes(byte for byte in range(256) if byte not in _LETTERS)
_DIGITS = b"0123456789"
_ADDRESS = re.compile(rb"0x[\da-fA-F]+")
_LOWERED = bytes(range(256)).lower()
# The beginning and the end are looked at line by line: a message without such a word (a shell's `Killed`, a pasted
# table) stands there.
WHOLE = 1 << 16
LONGEST_PIECE = 1 << 20  # of a line without end
END = 1 << 19  # bytes at the end that are looked at anew, however many errors there were
_CROWD = 32  # lines with a word in one block; the rest of it is sifted
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


class Sieve(Protocol):
    """Knows lines that need no look. Where many have one of the words, most of them say the same again."""

    def renew(self) -> None:
        """The log's end begins."""

    def passes_all(self, forms: list[bytes], number: int) -> bool:
        """Whether none of these lines, the first of which has this number, needs a look; then they are counted."""

    def passes(self, line: bytes, form: bytes, number: int) -> bool:
        """Whether this line needs none; then it is counted."""


class Scanner:
    """Goes through a log once."""

    def __init__(self, sieve: Sieve) -> None:
        self._sieve = sieve
        self._following = 0
        self._whole = WHOLE  # bytes from here on of which every line is given
        self._tail = b""
        self._is_crowd = False  # whether the log has shown blocks with many such lines
        self.lines = 0  # read so far
        self.bytes = 0

    def follow(self, count: int) -> None:
        """Also give at least so many lines that come now, whatever is in them."""
        self._following = max(self._following, count)

    def interesting(self, blocks: Iterable[bytes]) -> Iterator[RawLine]:
        """The lines with one of the words, and those that the reader wants to follow."""
        rest = b""
        for block in self._renewed_at_end(blocks):
            self.bytes += len(block)
            rest += block
            end = self._end_of_part(rest)
            if end:
                yield from self._in(rest[:end])
                self._tail = rest[max(0, end - _CONTEXT) : end]
                rest = rest[end:]
        self._whole = len(rest)
        self._sieve.renew()
        yield from self._in(rest)
        self.lines += bool(rest) and not rest.endswith(b"\n")

    def _renewed_at_end(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        held: deque[bytes] = deque()
        size = 0
        for block in blocks:
            held.append(block)
            size += len(block)
            while size - len(held[0]) >= END:
                size -= len(held[0])
                yield held.popleft()
        self._sieve.renew()
        yield from held

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
        can_sift = b"\r" not in data and data.endswith(b"\n")
        if self._is_crowd and not self._whole and can_sift:
            yield from self._sifted(data, 0)
            return
        lowered = data.lower()
        places = [lowered.find(trigger) for trigger in TRIGGERS]
        at = counted = given = 0
        while at < end:
            if given >= _CROWD and at >= self._whole and can_sift:
                self.lines += data.count(b"\n", counted, at)
                yield from self._sifted(data, at)
                counted, self._is_crowd = end, True
                break
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
                given += 1
                yield self._given(data, start, hit, stop)
        self._whole = max(0, self._whole - end)
        self.lines += data.count(b"\n", counted, end)

    def _sifted(self, data: bytes, at: int) -> Iterator[RawLine]:
        """Those of the rest of a block that need a look."""
        rest = data[at:-1]
        forms = form_of(rest).split(b"\n")
        if not self._following and self._sieve.passes_all(forms, self.lines + 1):
            self.lines += len(forms)
            return
        for line, form in zip(rest.split(b"\n"), forms, strict=True):
            start, at = at, at + len(line) + 1
            if self._following:
                self._following -= 1
            elif self._sieve.passes(line, form, self.lines + 1):
                self.lines += 1
                continue
            if line:
                yield self._given(data, start, start + max(0, _first_word(line)), at - 1)
            self.lines += 1

    def _given(self, data: bytes, start: int, hit: int, stop: int) -> RawLine:
        line = data[max(start, hit - _CLIP_BEFORE) : min(stop, hit + _CLIP_AFTER)]
        return RawLine(self.lines + 1, line, self._tail, data, start)


def form_of(line: bytes) -> bytes:
    """What lines that differ only in numbers have in common; also of many lines at once."""
    if b"0x" in line:
        line = _ADDRESS.sub(b"0x", line)
    return line.translate(None, _DIGITS)


def has_word(line: bytes) -> bool:
    """Whether one of the words stands in it."""
    lowered = line.lower()
    return any(trigger in lowered for trigger in TRIGGERS)


def _first_word(line: bytes) -> int:
    """Where one of the words stands; -1 if there is none."""
    lowered = line.lower()
    return next((place for place in map(lowered.find, TRIGGERS) if place >= 0), -1)


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
