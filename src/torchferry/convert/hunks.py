"""The changed lines of a file, side by side, from the edits that changed them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher

from torchferry.outcome import Hunk
from torchferry.source.edits import Edit

_NEWLINE = re.compile("\r\n|\r|\n")
_CONTEXT = 3

Row = tuple[str, str, str]


def make_hunks(old_text: str, new_text: str, old_data: bytes, edits: Sequence[Edit]) -> tuple[Hunk, ...]:
    """Hunks with a few lines of context; lines are split as Python counts them."""
    old, new = _NEWLINE.split(old_text), _NEWLINE.split(new_text)
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", old_data))]
    hunks: list[Hunk] = []
    shift = 0
    for first, last, added in _merge(_line_ranges(edits, starts, old_data)):
        begin, end = max(first - _CONTEXT, 0), min(last + _CONTEXT, len(old) - 1)
        rows: list[Row] = [(" ", line, line) for line in old[begin:first]]
        rows += _rows(old[first : last + 1], new[first + shift : last + shift + added + 1])
        rows += [(" ", line, line) for line in old[last + 1 : end + 1]]
        hunks.append(Hunk(begin + 1, begin + shift + 1, tuple(rows)))
        shift += added
    return tuple(hunks)


def _line_ranges(edits: Sequence[Edit], starts: list[int], data: bytes) -> list[tuple[int, int, int]]:
    """(first line, last line, lines added) of each edit, counted from 0."""
    ranges = []
    for edit in sorted(set(edits)):
        first = bisect_right(starts, edit.start) - 1
        last = bisect_right(starts, edit.end) - 1
        added = len(_NEWLINE.findall(edit.text)) - len(
            re.findall(rb"\r\n|\r|\n", data[edit.start : edit.end])
        )
        ranges.append((first, last, added))
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
