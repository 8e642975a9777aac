"""What a pass changes in a module, gathered so that everything inserted at one place has one order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from torchferry.conversion.program.blocks import first_line, indent_of, on_next_line, shares_its_line
from torchferry.conversion.rule import Proposal
from torchferry.finding import Kind, Wording
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule


class Rank(IntEnum):
    """The order of what is inserted at one place; of one rank in the order in which it was asked for."""

    END = 0  # the end of an expression before the place
    IMPORT = 1  # imports below the ones that are there
    BELOW = 2  # lines that belong to the statement above
    ABOVE = 3  # lines that belong to the statement which follows
    BLOCK = 4  # the head of a new block, and indentation
    START = 5  # the beginning of the statement itself


# Lines that several changes may ask for, and that need to be there once.
_LINES = frozenset({Rank.IMPORT, Rank.BELOW, Rank.ABOVE})


@dataclass
class PlaceChange:
    """One thing that is done, or said, at one place."""

    start: int
    end: int
    message: Wording
    kind: Kind = Kind.CHANGE
    edits: list[tuple[Rank, Edit]] = field(default_factory=list)


class ModuleChanges:
    """Everything that a pass does in a module."""

    def __init__(self, module: PythonModule) -> None:
        self.module = module
        self.items: list[PlaceChange] = []

    def at(self, node: ast.AST, message: Wording, *edits: Edit) -> PlaceChange:
        """Begin a change of a node; edits that are given are of its own text."""
        change = self.between(self.module.start(node), self.module.end(node), message)
        change.edits += [(Rank.END if edit.start > change.start else Rank.START, edit) for edit in edits]
        return change

    def between(self, start: int, end: int, message: Wording) -> PlaceChange:
        change = PlaceChange(start, end, message)
        self.items.append(change)
        return change

    def remark(self, kind: Kind, node: ast.AST, message: Wording) -> None:
        """Say something without a change."""
        self.items.append(PlaceChange(self.module.start(node), self.module.end(node), message, kind))

    def add_below(self, statement: ast.stmt, line: str, message: Wording) -> None:
        """A change of its own: a new statement after one."""
        self.at(statement, message).edits.append(self.below(statement, line))

    def below(self, statement: ast.stmt, line: str) -> tuple[Rank, Edit]:
        """A new statement after one, on its own line where that is possible."""
        if shares_its_line(self.module, statement):
            end = self.module.end(statement)
            return Rank.BELOW, Edit(end, end, f"; {line}")
        lines = f"{self.module.newline}{indent_of(self.module, statement)}".join(line.split("\n"))
        return Rank.BELOW, on_next_line(self.module, statement, indent_of(self.module, statement) + lines)

    def above(self, statement: ast.stmt, line: str) -> tuple[Rank, Edit]:
        """A new statement before one."""
        start = self.module.start(statement)
        indent = indent_of(self.module, statement)
        if indent.strip():
            return Rank.ABOVE, Edit(start, start, f"{line}; ")
        start = self.module.line_starts[first_line(statement) - 1]
        return Rank.ABOVE, Edit(start, start, f"{indent}{line}{self.module.newline}")

    def proposals(self) -> Iterator[Proposal]:
        """The changes; what several insert at one place is one edit, and each of them has it."""
        merged = {place: Edit(place, place, text) for place, text in self._inserted().items()}
        for item in self.items:
            edits = [merged[edit.start] if edit.start == edit.end else edit for _, edit in item.edits]
            yield Proposal(item.kind, item.start, item.end, item.message, tuple(dict.fromkeys(edits)))

    def _inserted(self) -> dict[int, str]:
        """By place: all that is inserted there, each once."""
        found: dict[int, list[tuple[Rank, str]]] = {}
        known: set[tuple[object, ...]] = set()
        for item in self.items:
            for rank, edit in item.edits:
                # The same of two changes is two things, unless it is a line, or they are one change made twice.
                by = None if rank in _LINES else (item.start, item.end, item.message)
                if edit.start == edit.end and (rank, edit, by) not in known:
                    known.add((rank, edit, by))
                    found.setdefault(edit.start, []).append((rank, edit.text))
        return {
            place: "".join(text for _, text in sorted(here, key=lambda item: item[0]))
            for place, here in found.items()
        }
