"""Parallel wrappers around a model, which apex wants to see only after amp.initialize."""

from __future__ import annotations

import ast

from torchferry.convert.amp.changes import Changes, Rank
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.blocks import has_own_lines
from torchferry.convert.insertion import indent_of, on_next_line
from torchferry.convert.program import Program, last_name, text_of
from torchferry.source.edits import Edit
from torchferry.text import Text

_MOVED = Text(
    "wrapped after amp.initialize, which refuses a wrapped model",
    "移到 amp.initialize 之后：它不接受已包装的模型",
)
_TANGLED = Text(
    "the model is wrapped before its optimizer is made; amp.initialize must come between: move the wrapper below it",
    "模型在创建优化器之前已被包装；amp.initialize 须位于两者之间：请把包装移到其后",
)
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel", "DDP"})


def move_wraps(program: Program, changes: Changes, below: ast.stmt, models: list[str]) -> None:
    """model = DistributedDataParallel(model) goes below the line that prepares the model."""
    block = program.tree.position(below).block
    for statement in program.statements:
        if not _is_wrap(statement, models) or statement.lineno > below.lineno:
            continue
        if program.routine_of(statement) is not program.routine_of(below):
            continue
        if statement not in block or not has_own_lines(program.module, statement, statement):
            raise UnclearError(statement, _TANGLED)
        _move(program, changes, statement, below)


def _is_wrap(statement: ast.stmt, models: list[str]) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and last_name(statement.value.func) in _WRAPPERS
        and text_of(statement.targets[0]) in models
    )


def _move(program: Program, changes: Changes, statement: ast.stmt, below: ast.stmt) -> None:
    module = program.module
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    start = module.line_starts[first - 1]
    end = module.line_starts[last] if last < len(module.line_starts) else len(module.data)
    change = changes.between(start, end, _MOVED)
    change.edits.append((Rank.INLINE, Edit(start, end, "")))
    text = indent_of(module, below) + module.segment(statement)
    change.edits.append((Rank.BELOW, on_next_line(module, below, text)))
