"""The changed lines of a file, side by side, from the edits that changed them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchferry.convert.line_rows import Row, matched_rows
from torchferry.outcome import Hunk
from torchferry.source.edits import Edit
from torchferry.source.source_text import SourceText

_NEWLINE = re.compile(rb"\r\n|\r|\n")
_CONTEXT = 3


def make_hunks(old: SourceText, new: SourceText, edits: Sequence[Edit]) -> tuple[Hunk, ...]:
    """Hunks with a few lines of context; lines are split as Python counts them."""
    hunks: list[Hunk] = []
    shift = 0
    count = len(old.line_starts)
    for stretch in _stretches(sorted(set(edits)), old):
        first, last = stretch.first, stretch.last
        begin, end = max(first - _CONTEXT, 1), min(last + _CONTEXT, count)
        rows: list[Row] = [(" ", line, line) for line in _lines(old, begin, first - 1)]
        rows += _rows(
            stretch, _lines(old, first, last), _lines(new, first + shift, last + shift + stretch.added)
        )
        rows += [(" ", line, line) for line in _lines(old, last + 1, end)]
        hunks.append(Hunk(begin, begin + shift, tuple(rows)))
        shift += stretch.added
    return tuple(hunks)


def _lines(module: SourceText, first: int, last: int) -> list[str]:
    return [module.line_text(number) for number in range(first, last + 1)]


@dataclass
class _Stretch:
    """Old lines that belong together, and what is known about how they became new ones."""

    first: int
    last: int
    added: int = 0
    inserted: dict[int, int] = field(default_factory=dict)  # whole lines put before an old line
    is_plain: bool = True  # beside those, every old line became one new line


def _stretches(edits: Sequence[Edit], old: SourceText) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    for edit in edits:
        first, last = old.line_of(edit.start), old.line_of(edit.end)
        if stretches and first <= stretches[-1].last + 2 * _CONTEXT:
            stretch = stretches[-1]
            stretch.last = max(stretch.last, last)
        else:
            stretch = _Stretch(first, last)
            stretches.append(stretch)
        removed = len(_NEWLINE.findall(old.data[edit.start : edit.end]))
        added = len(_NEWLINE.findall(edit.text.encode("utf-8")))
        stretch.added += added - removed
        is_whole = edit.start == edit.end == old.line_starts[first - 1] and edit.text.endswith(("\n", "\r"))
        if is_whole:
            stretch.inserted[first] = stretch.inserted.get(first, 0) + added
        elif added or removed:
            stretch.is_plain = False
    return stretches


def _rows(stretch: _Stretch, old: list[str], new: list[str]) -> list[Row]:
    if not stretch.is_plain:
        return matched_rows(old, new)
    rows: list[Row] = []
    fresh = iter(new)
    for number, line in enumerate(old, start=stretch.first):
        rows += [("+", "", next(fresh)) for _ in range(stretch.inserted.get(number, 0))]
        after = next(fresh)
        rows.append((" " if line == after else "~", line, after))
    return rows
