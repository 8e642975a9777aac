"""The edits of a pass, gathered so that those which insert at one place become one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from torchferry.conversion.program.blocks import first_line, indent_of, on_next_line, shares_its_line
from torchferry.conversion.program.module import PassModule
from torchferry.conversion.rule import Proposal
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
class PassChange:
    """One thing that is done, at one place."""

    start: int
    end: int
    message: Text
    edits: list[tuple[Rank, Edit]] = field(default_factory=list)


class ModuleChanges:
    """Everything that a pass does in a module."""

    def __init__(self, module: PythonModule) -> None:
        self.module = module
        self.items: list[PassChange] = []

    def at(self, node: ast.AST, message: Text, *edits: Edit) -> PassChange:
        """Begin a change of a node; edits that are given are of the statement itself."""
        change = self.between(self.module.start(node), self.module.end(node), message)
        change.edits += [(Rank.INLINE, edit) for edit in edits]
        return change

    def between(self, start: int, end: int, message: Text) -> PassChange:
        change = PassChange(start, end, message)
        self.items.append(change)
        return change

    def add_below(self, statement: ast.stmt, line: str, message: Text) -> None:
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
        """The changes with edits that don't meet: what several insert at one place is one edit of the first."""
        inserted: dict[int, list[tuple[Rank, Edit]]] = {}
        for item in self.items:
            for rank, edit in item.edits:
                if edit.start == edit.end:
                    inserted.setdefault(edit.start, []).append((rank, edit))
        merged = {
            position: Edit(
                position, position, "".join(edit.text for _, edit in sorted(found, key=lambda item: item[0]))
            )
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


# How a module writes torch, and the imports that it needs in addition.

_ADDED = Text("the import that mixed precision needs", "混合精度所需的导入")


def torch_name(program: PassModule, changes: ModuleChanges) -> str:
    """The name of torch in every function of a module; adds an import where it has none."""
    name = program.module.imported_as("torch")
    first = first_import(program)
    if not name and first is not None:
        changes.at(first, _ADDED).edits.append(changes.above(first, "import torch"))
    return name or "torch"


def first_import(program: PassModule) -> ast.stmt | None:
    """The first import of the module's own level; what loads the plugin alone is there only once it is converted."""
    found = [
        item
        for item in program.module.tree.body
        if isinstance(item, ast.Import) or (isinstance(item, ast.ImportFrom) and item.module != "__future__")
    ]
    return next(iter(found), None) if any(not loads_plugin(program, item) for item in found) else None


def loads_plugin(program: PassModule, statement: ast.stmt) -> bool:
    """Whether a statement is the one that a conversion adds: `import torch_npu`, or `import torch; DEVICE_TYPE = ...`."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return False
    target, module = program.context.target, program.module
    if not target.prelude_module and target.prelude:
        return module.data.startswith(f"; {target.prelude}".encode(), module.end(statement))
    return [alias.name for alias in statement.names] == [target.prelude_module]


# Why a training step is left to the user.


class UnclearStepError(Exception):
    """A training step that the pass does not understand well enough; then nothing of the module is changed."""

    def __init__(self, node: ast.AST, reason: Text, is_certain: bool = False) -> None:
        super().__init__(reason.en)
        self.node = node
        self.reason = reason
        self.is_certain = is_certain  # it trains, whatever else the function shows
