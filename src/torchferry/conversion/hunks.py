"""The changed lines of a file, side by side, from the edits that changed them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from torchferry.outcome import Hunk
from torchferry.source.decode import SourceText
from torchferry.source.edits import Edit

# Lines of an old and a new text side by side.

Row = tuple[str, str, str]  # tag, old, new; the tag is " ", "~" changed, "+" added, "-" removed


def matched_rows(old: list[str], new: list[str]) -> list[Row]:
    """Every line of both, those that belong together in one row."""
    rows: list[Row] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [(" ", line, line) for line in old[a:b]]
        else:
            rows += _changed_rows(old[a:b], new[c:d])
    return rows


def _changed_rows(old: list[str], new: list[str]) -> list[Row]:
    """Pairs from the top, or from the bottom where the last lines are the ones that are alike."""
    paired = min(len(old), len(new))
    pairs_at_end = (
        paired > 0 and len(old) != len(new) and _likeness(old[-1], new[-1]) > _likeness(old[0], new[0])
    )
    skip_old, skip_new = (len(old) - paired, len(new) - paired) if pairs_at_end else (0, 0)
    pairs: list[Row] = [
        ("~", left, right) for left, right in zip(old[skip_old:], new[skip_new:], strict=False)
    ]
    alone: list[Row] = [("-", line, "") for line in (old[:skip_old] if pairs_at_end else old[paired:])]
    alone += [("+", "", line) for line in (new[:skip_new] if pairs_at_end else new[paired:])]
    return [*alone, *pairs] if pairs_at_end else [*pairs, *alone]


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).quick_ratio()


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
