"""The changed lines of a file, side by side, from the edits that changed them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from torchferry.outcome import Hunk
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule

_NEWLINE = re.compile(rb"\r\n|\r|\n")
_CONTEXT = 3

Row = tuple[str, str, str]


def make_hunks(old: PythonModule, new: PythonModule, edits: Sequence[Edit]) -> tuple[Hunk, ...]:
    """Hunks with a few lines of context; lines are split as Python counts them."""
    hunks: list[Hunk] = []
    shift = 0
    count = len(old.line_starts)
    for first, last, added in _merge(_line_ranges(edits, old)):
        begin, end = max(first - _CONTEXT, 1), min(last + _CONTEXT, count)
        rows: list[Row] = [(" ", line, line) for line in _lines(old, begin, first - 1)]
        rows += _rows(_lines(old, first, last), _lines(new, first + shift, last + shift + added))
        rows += [(" ", line, line) for line in _lines(old, last + 1, end)]
        hunks.append(Hunk(begin, begin + shift, tuple(rows)))
        shift += added
    return tuple(hunks)


def _lines(module: PythonModule, first: int, last: int) -> list[str]:
    return [module.line_text(number) for number in range(first, last + 1)]


def _line_ranges(edits: Sequence[Edit], old: PythonModule) -> list[tuple[int, int, int]]:
    """(first line, last line, lines added) of each edit."""
    ranges = []
    for edit in sorted(set(edits)):
        removed = len(_NEWLINE.findall(old.data[edit.start : edit.end]))
        added = len(_NEWLINE.findall(edit.text.encode("utf-8"))) - removed
        ranges.append((old.line_of(edit.start), old.line_of(edit.end), added))
    return ranges


def _merge(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join what lies so close that the context would overlap."""
    merged: list[tuple[int, int, int]] = []
    for first, last, added in ranges:
        if merged and first <= merged[-1][1] + 2 * _CONTEXT:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], last), before[2] + added)
        else:
            merged.append((first, last, added))
    return merged


def _rows(old: list[str], new: list[str]) -> list[Row]:
    if len(old) == len(new):
        return [(" " if a == b else "~", a, b) for a, b in zip(old, new, strict=True)]
    rows: list[Row] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [(" ", line, line) for line in old[a:b]]
            continue
        paired = min(b - a, d - c)
        rows += [
            ("~", left, right) for left, right in zip(old[a : a + paired], new[c : c + paired], strict=True)
        ]
        rows += [("-", line, "") for line in old[a + paired : b]]
        rows += [("+", "", line) for line in new[c + paired : d]]
    return rows
