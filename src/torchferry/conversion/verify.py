"""The proof that a rewrite did what was meant and nothing else, and the lines that it changed, side by side."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from torchferry.conversion.program.blocks import blocks_of
from torchferry.outcome import Hunk
from torchferry.source.decode import SourceText
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule


class VerificationError(ValueError):
    """A rewritten module is not what it should be."""


def check_rewrite(
    old: PythonModule, new: PythonModule, edits: Sequence[Edit], may_nest: bool = False
) -> None:
    """Every statement that no edit wrote must be where it was, and of the same sort.

    Bytes outside edits are equal by construction. What could still go wrong is that an edit changes how they are
    read, for example by opening a string. Then statements would appear, vanish or move, and that is seen here.
    A statement that no edit touches is compared as a whole: the same bytes at the right place read the same.
    A restructured program may have put statements into a new block (`may_nest`): then their depth is not compared.
    """
    ordered = sorted(set(edits))
    moves = _Moves(ordered)
    written = _WrittenRanges(ordered)
    found = set(_statements(new, written.touch, may_nest))
    for kind, depth, start in _statements(old, moves.touches, may_nest):
        if moves.replaces(start):
            continue
        place = next((item for item in moves.positions(start) if (kind, depth, item) in found), None)
        if place is None:
            raise _difference(new, moves.positions(start)[0])
        found.discard((kind, depth, place))
    for _, _, start in found:
        if not written.hold(start):
            raise _difference(new, start)


def _difference(module: PythonModule, position: int) -> VerificationError:
    line = module.line_of(position)
    return VerificationError(f"the rewritten text reads differently near line {line}")


Statement = tuple[type[ast.AST], int, int]  # sort, depth, position


def _statements(
    module: PythonModule, touched: Callable[[int, int], bool], may_nest: bool
) -> Iterator[Statement]:
    """The statements of the module's own level, and those that lie directly within touched ones."""
    deeper = 0 if may_nest else 1
    waiting: list[tuple[ast.stmt, int]] = [(statement, 0) for statement in module.tree.body]
    while waiting:
        statement, depth = waiting.pop()
        start = module.start(statement)
        yield type(statement), depth, start
        if hasattr(statement, "body") and touched(start, _next_line(module, statement)):
            for block in blocks_of(statement):
                waiting.extend((child, depth + deeper) for child in block)


def _next_line(module: PythonModule, statement: ast.stmt) -> int:
    """Where the next line with code begins after a statement: what is inserted or removed there may be a part of it."""
    starts = module.line_starts
    last = statement.end_lineno or statement.lineno
    while last < len(starts) and module.line_text(last + 1).lstrip()[:1] in ("", "#"):
        last += 1
    return starts[last] if last < len(starts) else len(module.data)


class _Moves:
    """Where bytes end up after a sequence of edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.edits = edits
        self.ends = [edit.end for edit in edits]
        self.shifts = [0]
        for edit in edits:
            self.shifts.append(self.shifts[-1] + len(edit.text.encode("utf-8")) - (edit.end - edit.start))

    def positions(self, old: int) -> tuple[int, ...]:
        """Where a byte that no edit replaces may be: behind what is inserted right before it, or joined with all of it,
        or with its last line."""
        index = bisect_right(self.ends, old)
        moved = old + self.shifts[index]
        last = self.edits[index - 1] if index else None
        if last is not None and last.start == last.end == old:
            joined = last.text.replace("\r", "\n").rpartition("\n")[2].lstrip()
            return tuple(moved - len(text.encode("utf-8")) for text in ("", last.text, joined))
        return (moved,)

    def replaces(self, old: int) -> bool:
        index = bisect_right(self.ends, old)
        return index < len(self.edits) and self.edits[index].start <= old

    def touches(self, start: int, end: int) -> bool:
        """Whether an edit lies in [start, end]."""
        index = bisect_left(self.ends, start)
        return index < len(self.edits) and self.edits[index].start <= end


class _WrittenRanges:
    """The ranges of the new text that edits wrote."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        shift = 0
        for edit in edits:
            length = len(edit.text.encode("utf-8"))
            self.starts.append(edit.start + shift)
            self.ends.append(edit.start + shift + length)
            shift += length - (edit.end - edit.start)

    def hold(self, position: int) -> bool:
        index = bisect_right(self.starts, position) - 1
        return index >= 0 and position < self.ends[index]

    def touch(self, start: int, end: int) -> bool:
        """Whether a range has a byte, or an edge, in [start, end]."""
        index = bisect_left(self.ends, start)
        return index < len(self.starts) and self.starts[index] <= end


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
