"""A text with its bytes, and the lines and columns of positions in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate

from torchferry.source.decode import DecodedText

_NEWLINE = re.compile(rb"\r\n|\r|\n")


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
