"""The proof that a rewrite did what was meant and nothing else."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from torchferry.conversion.program.blocks import blocks_of
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
    written = _Ranges(ordered)
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


class _Ranges:
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
