"""The text of a source file: its bytes, so that whatever is not edited stays the same; its lines and columns."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#[^\r\n]*)?$")
_NEWLINE = re.compile(rb"\r\n|\r|\n")
# Tried in this order for files that are not UTF-8 and don't say what they are. The last one accepts anything.
_UNDECLARED = ("gb18030", "latin-1")


class UndecodableError(ValueError):
    """The bytes are not text in the encoding that the file declares, or in any that we know."""


@dataclass(frozen=True)
class DecodedText:
    """The text of a file and how to write it again."""

    text: str  # without byte order mark
    encoding: str
    bom: bytes = b""
    guessed: bool = False  # neither UTF-8 nor declared: Python itself would refuse the file

    def encode(self, text: str) -> bytes:
        """Bytes for a new text in the encoding of the old one."""
        return self.bom + text.encode(self.encoding)


def decode(data: bytes) -> DecodedText:
    """Decode by byte order mark, coding cookie, UTF-8, or the usual legacy encodings, in this order."""
    if data.isascii():
        return DecodedText(data.decode("ascii"), "utf-8")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UndecodableError("UTF-16 text is not converted; save it as UTF-8")
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(bom) :]
    declared = "utf-8" if bom else _declared_encoding(body)
    if declared:
        return DecodedText(_decode_exactly(body, declared), declared, bom)
    try:
        return DecodedText(body.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        for encoding in _UNDECLARED:
            try:
                return DecodedText(_decode_exactly(body, encoding), encoding, guessed=True)
            except UndecodableError:
                continue
        raise UndecodableError("no known encoding fits") from None


def _declared_encoding(body: bytes) -> str:
    """The encoding named by a cookie in the first two lines, "" if there is none."""
    for line in _NEWLINE.split(body[:1000], maxsplit=2)[:2]:
        match = _COOKIE.match(line)
        if match:
            return match.group(1).decode("ascii")
        if not _BLANK.match(line):
            break
    return ""


def _decode_exactly(body: bytes, encoding: str) -> str:
    try:
        text = body.decode(encoding)
        if text.encode(encoding) == body:
            return text
    except LookupError:
        raise UndecodableError(f"unknown encoding {encoding!r} in the coding comment") from None
    except UnicodeError as error:
        raise UndecodableError(f"not valid {encoding}: {error}") from None
    raise UndecodableError(f"{encoding} does not give the same bytes back")


class SourceText:
    """A text of any sort. Positions are bytes of its UTF-8 form."""

    def __init__(self, decoded: DecodedText) -> None:
        self.decoded = decoded
        self.data = decoded.text.encode("utf-8")

    @cached_property
    def line_starts(self) -> list[int]:
        lines = self.data.splitlines(keepends=True)
        starts = [0, *accumulate(map(len, lines))]
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            starts.pop()
        return starts

    @cached_property
    def newline(self) -> str:
        """The line ending of the first line, for lines that we add."""
        match = _NEWLINE.search(self.data)
        return match.group().decode("ascii") if match else "\n"

    def line_of(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset)

    def column_of(self, offset: int) -> int:
        """1-based column in characters."""
        start = self.line_starts[self.line_of(offset) - 1]
        return len(self.data[start:offset].decode("utf-8", "replace")) + 1

    def line_text(self, line: int) -> str:
        """A line without its ending."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.data)
        return self.data[start:end].decode("utf-8").rstrip("\r\n")

    def lines_with(self, words: Iterable[bytes]) -> set[int]:
        """Numbers of the lines in which a word occurs, also as a part of a longer one."""
        lines: set[int] = set()
        data = self.data
        starts = self.line_starts
        for word in words:
            position = data.find(word)
            while position >= 0:
                line = bisect_right(starts, position)
                lines.add(line)
                position = data.find(word, starts[line]) if line < len(starts) else -1
        return lines

    def lines_matching(self, pattern: re.Pattern[bytes]) -> set[int]:
        """Numbers of the lines on which a match ends."""
        return {bisect_right(self.line_starts, match.end() - 1) for match in pattern.finditer(self.data)}
