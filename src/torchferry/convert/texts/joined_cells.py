"""The code cells of a notebook as one module, and the cells again from that module after its conversion."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from torchferry.convert.texts.magics import CellReading, ShownLine
from torchferry.convert.verify import VerificationError

_NEWLINE = re.compile("\r\n|\r|\n")


class _Line(NamedTuple):
    """Where a line of a cell is in the module."""

    start: int  # in the module
    cell: int
    offset: int  # in the source of the cell
    shown: ShownLine


class JoinedCells:
    """What is code in the cells, each behind a comment that tells where it begins.

    A line that stands for something else ends in a comment with a number, by which it is found again.
    """

    def __init__(self, sources: Sequence[str], readings: Sequence[CellReading]) -> None:
        self._tag = "ferry-cell"
        while any(self._tag in source for source in sources):
            self._tag += "-"
        self._sources = sources
        self._readings = readings
        self.cells = [index for index, reading in enumerate(readings) if reading.lines]
        self._marked: list[_Line] = []
        self._lines: list[_Line] = []
        self.text = self._join()
        self._mark = re.compile(rf"  #{self._tag}:(\d+)$")
        self._header = re.compile(rf"^(?:if 1:  )?#{self._tag} (\d+)\n", re.MULTILINE)

    def _join(self) -> str:
        pieces: list[str] = []
        position = 0
        for cell in self.cells:
            pieces.append(f"{'if 1:  ' if self._readings[cell].is_indented else ''}#{self._tag} {cell}\n")
            position += len(pieces[-1])
            offset = 0
            for line, shown in zip(self._sources[cell].split("\n"), self._readings[cell].lines, strict=True):
                self._lines.append(_Line(position, cell, offset, shown))
                pieces.append(self._written(self._lines[-1]) + "\n")
                position += len(pieces[-1])
                offset += len(line) + 1
        return "".join(pieces)

    def _written(self, line: _Line) -> str:
        shown = line.shown
        if not (shown.stands_in or shown.hidden):
            return shown.shown
        self._marked.append(line)
        return f"{shown.shown.rstrip()}  #{self._tag}:{len(self._marked) - 1}"

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def origin(self, line: int, column: int) -> tuple[int, int]:
        """The cell of a line and column (from 1) of the module, and the position in its source."""
        position = self._line_starts[line - 1] + column - 1
        found = self._lines[max(bisect_right(self._lines, position, key=lambda item: item.start) - 1, 0)]
        source = self._sources[found.cell]
        if found.shown.stands_in:
            return found.cell, found.offset
        column = max(position - found.start, 0)
        if column >= _indentation(found.shown.shown):
            column += len(found.shown.hidden)
        return found.cell, min(found.offset + column, len(source))

    def cells_of(self, text: str, sources: Sequence[str]) -> dict[int, str]:
        """The source of each cell in the converted module; `sources` has the lines that were not shown."""
        pieces = self._header.split(text)
        if pieces[0] or [int(number) for number in pieces[1::2]] != self.cells:
            raise VerificationError("a change would reach from one cell into another")
        found: dict[int, str] = {}
        expected = 0
        for cell, piece in zip(self.cells, pieces[2::2], strict=True):
            hidden = sources[cell].split("\n")
            lines: list[str] = []
            for line in piece.removesuffix("\n").split("\n"):
                match = self._mark.search(line)
                if match is None:
                    lines.append(line)
                    continue
                if int(match.group(1)) != expected:
                    raise VerificationError("a change would move a line that is no Python")
                lines.append(self._unmarked(line[: match.start()], expected, hidden))
                expected += 1
            found[cell] = _with_endings_of(sources[cell], "\n".join(lines))
        if expected != len(self._marked):
            raise VerificationError("a change would remove a line that is no Python")
        return found

    def _unmarked(self, line: str, number: int, hidden: list[str]) -> str:
        """What a marked line stands for; its indentation may have changed."""
        marked = self._marked[number]
        original = hidden[self._sources[marked.cell].count("\n", 0, marked.offset)]
        indent = line[: _indentation(line)]
        if not marked.shown.stands_in:
            ending = original[len(original.rstrip()) :]
            return f"{indent}{marked.shown.hidden}{line[len(indent) :]}{ending}"
        if line.strip() != marked.shown.shown.strip():
            raise VerificationError("a change would reach into a line that is no Python")
        if not line.strip() or indent == marked.shown.shown[: _indentation(marked.shown.shown)]:
            return original
        return indent + original.lstrip(" \t")

    def without_marks(self, text: str) -> str:
        """A piece of the module for people to read."""
        if self._tag not in text:
            return text
        lines = (self._mark.sub("", line) for line in text.split("\n"))
        return "\n".join(line for line in lines if self._tag not in line)


def _with_endings_of(old: str, new: str) -> str:
    """A new source whose lines end as those of the old one, if those all end in the same way."""
    ends = set(_NEWLINE.findall(old))
    return re.sub(r"(?<!\r)\n", "\r\n", new) if ends == {"\r\n"} else new


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
