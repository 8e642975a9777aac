"""The JSON of a notebook: where the source of each code cell is written, and how a new source is written there."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any

from torchferry.conversion.verify import Row, matched_rows
from torchferry.source.module import ParseError

# What stands for one character of the value: a pair of surrogates, an escape, or the character itself.
_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
# Lines longer than this (data, rather than code) are replaced between their first and last difference.
_LONGEST_COMPARED = 2000

Replacement = tuple[int, int, str]  # characters [start, end) become the text


@dataclass(frozen=True)
class JsonString:
    """One string literal of a JSON text: where each character of the value is written."""

    start: int  # of the opening quote
    end: int  # behind the closing quote
    raw: str  # what is written between the quotes
    value: str

    @cached_property
    def _units(self) -> list[int]:
        """Where, within `raw`, each character of the value begins; and the end."""
        if "\\" not in self.raw:
            return list(range(len(self.raw) + 1))
        return [0, *accumulate(len(unit) for unit in _UNIT.findall(self.raw))]

    def position(self, index: int) -> int:
        """The position in the JSON text of a character of the value."""
        return self.start + 1 + self._units[index]

    def rewritten(self, replacements: Sequence[Replacement], ascii_only: bool) -> str:
        """What is written between the quotes after replacements in the value; the rest keeps its spelling."""
        pieces: list[str] = []
        done = 0
        for start, end, text in replacements:
            pieces += [self.raw[self._units[done] : self._units[start]], escaped(text, ascii_only)]
            done = end
        return "".join([*pieces, self.raw[self._units[done] :]])


def escaped(text: str, ascii_only: bool) -> str:
    """Text as it is written inside a JSON string."""
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def differences(old: str, new: str) -> list[Replacement]:
    """The characters to replace so that one line becomes another one."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    shorter -= head
    tail = next((index for index in range(shorter) if old[-1 - index] != new[-1 - index]), shorter)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(before) + len(after) > _LONGEST_COMPARED:
        return [(head, head + len(before), after)]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [(head + a, head + b, after[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


# The notebook, as strings in lists of cells.

_SPACE = re.compile(r"[ \t\r\n]*")
_PYTHON = ("", "python", "python2", "python3", "ipython")
_SOURCE_KEYS = ("source", "input")  # of format 4, of format 3


@dataclass(frozen=True)
class CellText:
    """The source of a cell as the file has it: one string, or a list of strings."""

    start: int
    end: int
    strings: tuple[JsonString, ...]
    gaps: tuple[str, ...] = ()  # of a list: what is written before, between and after the strings

    @cached_property
    def value(self) -> str:
        return "".join(string.value for string in self.strings)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(string.value) for string in self.strings)][:-1]

    @cached_property
    def has_line_per_string(self) -> bool:
        """Whether it is a list as Jupyter writes it: a string for each line, and the same between all of them."""
        lines = [string.value for string in self.strings]
        return bool(self.gaps) and lines == split_lines(self.value) and len(set(self.gaps[1:-1])) <= 1

    def position(self, offset: int) -> int:
        """The position in the file of a character of the source."""
        index = max(bisect_right(self._starts, offset) - 1, 0)
        return self.strings[index].position(offset - self._starts[index])

    def rewritten(self, new: str, ascii_only: bool) -> tuple[str, list[Row]]:
        """What the file has to say instead for a new source, and how its lines came about."""
        rows = matched_rows(split_lines(self.value), split_lines(new))
        if self.has_line_per_string:
            return self._rewritten_lines(rows, ascii_only), rows
        return self._rewritten_inside(rows, ascii_only), rows

    def _rewritten_lines(self, rows: list[Row], ascii_only: bool) -> str:
        """One string for each line, in the manner of those that are there."""
        strings = iter(self.strings)
        written: list[str] = []
        for tag, old, new in rows:
            string = next(strings) if tag != "+" else None
            if tag == "-":
                continue
            raw = string.rewritten(differences(old, new), ascii_only) if string else escaped(new, ascii_only)
            written.append(f'"{raw}"')
        between = self.gaps[1] if len(self.gaps) > 2 else "," + self.gaps[0][1:]
        return self.gaps[0] + between.join(written) + self.gaps[-1]

    def _rewritten_inside(self, rows: list[Row], ascii_only: bool) -> str:
        """The same strings with other text in them."""
        replacements = _replacements(rows)
        pieces: list[str] = []
        last = len(self.strings) - 1
        for index, (string, start) in enumerate(zip(self.strings, self._starts, strict=True)):
            end = start + len(string.value)
            inside = [
                (max(a, start) - start, min(b, end) - start, text if start <= a else "")
                for a, b, text in replacements
                if (a < end and (b > start or a >= start)) or (index == last and a == end)
            ]
            pieces.append(f'"{string.rewritten(inside, ascii_only)}"')
        if not self.gaps:
            return pieces[0]
        return "".join(chain.from_iterable(zip(self.gaps, pieces, strict=False))) + self.gaps[-1]


@dataclass(frozen=True)
class NotebookCell:
    """A code cell in the notebook's language."""

    number: int  # from 1, text cells counted as well
    text: CellText

    @property
    def source(self) -> str:
        return self.text.value


@dataclass
class Notebook:
    """What conversion needs to know of a notebook."""

    cells: list[NotebookCell] = field(default_factory=list)  # code cells that are Python
    language: str = ""

    @property
    def is_python(self) -> bool:
        return self.language.lower() in _PYTHON


def read_notebook(text: str) -> Notebook:
    """Read the JSON once; raises ParseError if it is none, or no notebook."""
    try:
        reader = _NotebookReader(text)
        end = reader.after_space(reader.members(reader.after_space(0), reader.member_of_notebook))
    except json.JSONDecodeError as error:
        raise ParseError(f"not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise ParseError("not read: nested too deeply", 1) from None
    if end != len(text):
        raise ParseError("not JSON: something follows its end", text.count("\n", 0, end) + 1)
    if not reader.has_cells:
        raise ParseError("no notebook: it has no list of cells", 1)
    return Notebook(reader.cells, reader.language)


def split_lines(source: str) -> list[str]:
    """Lines with their line feeds, as Jupyter splits them."""
    return re.findall(r"[^\n]*\n|[^\n]+", source)


def _replacements(rows: list[Row]) -> list[Replacement]:
    found: list[Replacement] = []
    position = 0
    for _, old, new in rows:
        for first, last, text in differences(old, new):
            start, end = position + first, position + last
            if found and found[-1][1] == start:  # insertions at one place are one
                start, text = found[-1][0], found.pop()[2] + text
            found.append((start, end, text))
        position += len(old)
    return found


Visit = Callable[[str, int], int]  # the key and the position of its value; answers with the end of the value


class _NotebookReader:
    """Goes through the JSON, and has the C scanner skip whatever holds no source."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cells: list[NotebookCell] = []
        self.language = ""
        self.has_cells = False
        self._count = 0
        self._decoder = json.JSONDecoder()

    def after_space(self, position: int) -> int:
        match = _SPACE.match(self.text, position)
        return match.end() if match else position

    def value(self, position: int) -> tuple[Any, int]:
        return self._decoder.raw_decode(self.text, position)

    def members(self, position: int, visit: Visit) -> int:
        """Visit the members of an object; anything else is skipped."""
        if not self.text.startswith("{", position):
            return self.value(position)[1]
        position = self.after_space(position + 1)
        while not self.text.startswith("}", position):
            if not self.text.startswith('"', position):
                raise json.JSONDecodeError("a key in double quotes expected", self.text, position)
            key, position = self.value(position)
            position = self.after_space(self._behind(":", self.after_space(position)))
            position = self._next("}", visit(key, position))
        return position + 1

    def items(self, position: int, visit: Callable[[int], int]) -> int:
        """Visit the items of a list; anything else is skipped."""
        if not self.text.startswith("[", position):
            return self.value(position)[1]
        position = self.after_space(position + 1)
        while not self.text.startswith("]", position):
            position = self._next("]", visit(position))
        return position + 1

    def _behind(self, character: str, position: int) -> int:
        if not self.text.startswith(character, position):
            raise json.JSONDecodeError(f"'{character}' expected", self.text, position)
        return position + 1

    def _next(self, closing: str, position: int) -> int:
        """The position of the next item, or of the closing bracket."""
        position = self.after_space(position)
        if self.text.startswith(closing, position):
            return position
        position = self.after_space(self._behind(",", position))
        if self.text.startswith(closing, position):
            raise json.JSONDecodeError("nothing follows the comma", self.text, position)
        return position

    def member_of_notebook(self, key: str, position: int) -> int:
        if key == "cells":
            return self._cells(position)
        if key == "worksheets":
            return self.items(position, lambda at: self.members(at, self._member_of_worksheet))
        value, end = self.value(position)
        if key == "metadata":
            self.language = _language(value)
        return end

    def _member_of_worksheet(self, key: str, position: int) -> int:
        return self._cells(position) if key == "cells" else self.value(position)[1]

    def _cells(self, position: int) -> int:
        self.has_cells = self.has_cells or self.text.startswith("[", position)
        return self.items(position, self._cell)

    def _cell(self, position: int) -> int:
        members: dict[str, Any] = {}

        def visit(key: str, at: int) -> int:
            if key in _SOURCE_KEYS:
                members[key], end = self._source(at)
            else:
                members[key], end = self.value(at)
            return end

        end = self.members(position, visit)
        self._count += 1
        source = members.get("source", members.get("input"))
        if members.get("cell_type") == "code" and source is not None and _is_python_cell(members):
            self.cells.append(NotebookCell(self._count, source))
        return end

    def _source(self, position: int) -> tuple[CellText | None, int]:
        if self.text.startswith('"', position):
            string = self._string(position)
            return CellText(position, string.end, (string,)), string.end
        value, end = self.value(position)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            return None, end
        strings: list[JsonString] = []

        def visit(at: int) -> int:
            strings.append(self._string(at))
            return strings[-1].end

        self.items(position, visit)
        edges = [position, *chain.from_iterable((item.start, item.end) for item in strings), end]
        gaps = tuple(self.text[a:b] for a, b in list(pairwise(edges))[::2])
        return CellText(position, end, tuple(strings), gaps), end

    def _string(self, position: int) -> JsonString:
        value, end = self.value(position)
        return JsonString(position, end, self.text[position + 1 : end - 1], value)


def _language(metadata: Any) -> str:
    """The language of the kernel, "" if the notebook does not say."""
    for group, key in (("language_info", "name"), ("kernelspec", "language")):
        name = _member(_member(metadata, group), key)
        if name and isinstance(name, str):
            return name
    return ""


def _is_python_cell(members: dict[str, Any]) -> bool:
    """Format 3 names the language of each cell, editors that mix languages name those that differ."""
    editor = _member(_member(members.get("metadata"), "vscode"), "languageId")
    languages = (members.get("language"), editor)
    return all(not isinstance(name, str) or name.lower() in _PYTHON for name in languages)


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
