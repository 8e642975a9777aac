"""The edits of a pass, gathered so that those which insert at one place become one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from torchferry.convert.insertion import first_line, indent_of, on_next_line, shares_its_line
from torchferry.convert.rule import Proposal
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule
from torchferry.text import Text


class Rank(IntEnum):
    """The order of what is inserted at one place."""

    BELOW = 0  # lines that belong to the statement above
    ABOVE = 1  # lines that belong to the statement which follows
    BLOCK = 2  # the head of a new block, and indentation
    INLINE = 3  # the beginning of the statement itself


@dataclass
class Change:
    """One thing that is done, at one place."""

    start: int
    end: int
    message: Text
    edits: list[tuple[Rank, Edit]] = field(default_factory=list)


class Changes:
    """Everything that a pass does in a module."""

    def __init__(self, module: PythonModule) -> None:
        self.module = module
        self.items: list[Change] = []

    def at(self, node: ast.AST, message: Text) -> Change:
        """Begin a change of a node."""
        return self.between(self.module.start(node), self.module.end(node), message)

    def between(self, start: int, end: int, message: Text) -> Change:
        change = Change(start, end, message)
        self.items.append(change)
        return change

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
        """The changes with edits that don't meet: what several insert at one place is one edit of the first."""
        inserted: dict[int, list[tuple[Rank, Edit]]] = {}
        for item in self.items:
            for rank, edit in item.edits:
                if edit.start == edit.end:
                    inserted.setdefault(edit.start, []).append((rank, edit))
        merged = {
            position: Edit(position, position, "".join(edit.text for _, edit in sorted(found, key=_rank)))
            for position, found in inserted.items()
        }
        for item in self.items:
            edits: list[Edit] = []
            for _, edit in item.edits:
                if edit.start != edit.end:
                    edits.append(edit)
                elif edit.start in merged:
                    edits.append(merged.pop(edit.start))
            yield Proposal(Kind.CHANGE, item.start, item.end, item.message, tuple(edits))


def _rank(entry: tuple[Rank, Edit]) -> Rank:
    return entry[0]
