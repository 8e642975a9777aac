"""Members of a JSON object in a file of any size, one after the other; of a file that is cut off those that are whole."""

from __future__ import annotations

import json
import mmap
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

_WINDOW = 1 << 20  # bytes that are looked at, at first; a member that is longer gets more
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


class CutOffError(ValueError):
    """The text ends before its object does."""


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member, and where its value stands in the file."""

    name: str
    value: Any
    start: int
    length: int
    section: str  # the member that it is part of; "": the whole object


def members(data: mmap.mmap | bytes, section: str = "") -> Iterator[JsonMember]:
    """Those of the object; in the place of the member `section`, those of that one.

    Raises CutOffError where the text ends too early, and ValueError where it is no JSON.
    """
    text = _Window(data)
    try:
        yield from _members_at(text, text.expect("{", text.skip(0)), section, "")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _members_at(text: _Window, at: int, section: str, inside: str) -> Generator[JsonMember, None, int]:
    at = text.skip(at)
    if text.letter(at) == "}":
        return at + 1
    while True:
        name, at = text.value(at)
        if not isinstance(name, str):
            raise ValueError(f"a member of it has no name (at byte {at:,})")
        at = text.skip(text.expect(":", text.skip(at)))
        if section and name == section and text.letter(at) == "{":
            at = yield from _members_at(text, at + 1, "", section)
        else:
            start = at
            value, at = text.value(at)
            yield JsonMember(as_utf8(name), value, start, at - start, inside)
        at = text.skip(at)
        if text.letter(at) == "}":
            return at + 1
        at = text.skip(text.expect(",", at))


class _Window:
    """The part of a file that is looked at. A letter stands for a byte, so that places are those of the file."""

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self._data, self._start, self._text = data, 0, ""
        self._look_at(0, _WINDOW)

    def _look_at(self, start: int, length: int) -> None:
        self._start, self._text = start, self._data[start : start + length].decode("latin-1")

    @property
    def _is_last(self) -> bool:
        return self._start + len(self._text) >= len(self._data)

    def letter(self, at: int) -> str:
        """The letter there."""
        if not self._start <= at < self._start + len(self._text):
            self._look_at(at, _WINDOW)
        if not self._text:
            raise CutOffError("it is cut off")
        return self._text[at - self._start]

    def skip(self, at: int) -> int:
        """The next place without white space."""
        while self.letter(at) in _SPACE:
            at += 1
        return at

    def expect(self, wanted: str, at: int) -> int:
        """The place behind a letter that must be there."""
        if self.letter(at) != wanted:
            raise ValueError(f"it is no JSON object (at byte {at:,})")
        return at + 1

    def value(self, at: int) -> tuple[Any, int]:
        """The value that begins there, and the place behind it."""
        length = _WINDOW
        self.letter(at)
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, at - self._start)
                if end < len(self._text) or self._is_last:
                    return value, self._start + end
            except json.JSONDecodeError as error:
                if self._is_last:
                    is_end = error.pos + self._start >= len(self._data) - 1 or "Unterminated" in error.msg
                    known = CutOffError if is_end else ValueError
                    raise known(f"{error.msg} (at byte {self._start + error.pos:,})") from None
            if self._start == at:
                length *= 2
            self._look_at(at, length)


def as_utf8(text: str) -> str:
    """A text whose letters are bytes, as what they mean."""
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # it has letters by number
        return text
