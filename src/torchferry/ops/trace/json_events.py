"""The events of a trace in JSON, one after the other, whatever the size of the file and the state of its end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from torchferry.ops.trace.opening import Text, no_trace

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
