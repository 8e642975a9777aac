"""The proof that a rewrite did what was meant and nothing else."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule


class VerificationError(ValueError):
    """A rewritten module is not what it should be."""


def check_rewrite(old: PythonModule, new: PythonModule, edits: Sequence[Edit]) -> None:
    """Every statement that no edit wrote must be where it was, and of the same sort.

    Bytes outside edits are equal by construction. What could still go wrong is that an edit changes how they are
    read, for example by opening a string. Then statements would appear, vanish or move, and that is seen here.
    """
    ordered = sorted(set(edits))
    moves = _Moves(ordered)
    expected = {
        (kind, moves.position(start)) for kind, start in _statements(old) if not moves.replaces(start)
    }
    written = _written_ranges(ordered)
    actual = {(kind, start) for kind, start in _statements(new) if not _is_inside(written, start)}
    if expected != actual:
        odd = min(expected ^ actual, key=lambda item: item[1])
        raise VerificationError(f"the rewritten text reads differently near line {new.line_of(odd[1])}")


def _statements(module: PythonModule) -> Iterator[tuple[type[ast.AST], int]]:
    for unit in module.scopes.units:
        yield type(unit.statement), module.start(unit.statement)
    for scope in module.scopes.scopes[1:]:
        yield type(scope.node), module.start(scope.node)


class _Moves:
    """Where bytes end up after a sequence of edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.edits = edits
        self.ends = [edit.end for edit in edits]
        self.shifts = [0]
        for edit in edits:
            self.shifts.append(self.shifts[-1] + len(edit.text.encode("utf-8")) - (edit.end - edit.start))

    def position(self, old: int) -> int:
        """The new position of a byte that no edit replaces; what is inserted before it pushes it on."""
        return old + self.shifts[bisect_right(self.ends, old)]

    def replaces(self, old: int) -> bool:
        index = bisect_right(self.ends, old)
        return index < len(self.edits) and self.edits[index].start <= old


def _written_ranges(edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """The ranges of the new text that edits wrote."""
    ranges: list[tuple[int, int]] = []
    shift = 0
    for edit in edits:
        length = len(edit.text.encode("utf-8"))
        ranges.append((edit.start + shift, edit.start + shift + length))
        shift += length - (edit.end - edit.start)
    return ranges


def _is_inside(ranges: list[tuple[int, int]], position: int) -> bool:
    index = bisect_right(ranges, (position, float("inf"))) - 1
    return index >= 0 and ranges[index][0] <= position < ranges[index][1]
