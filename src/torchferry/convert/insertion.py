"""Where new lines go in a module."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(item.lineno for item in decorators)])


def indent_of(module: PythonModule, node: ast.stmt) -> str:
    """What stands before a statement on its line: its indentation without form feeds, or other code."""
    before = module.data[module.line_starts[node.lineno - 1] : module.start(node)]
    return before.decode("utf-8").replace("\f", "")


def on_next_line(module: PythonModule, node: ast.stmt, text: str) -> Edit:
    """An insertion below the line on which a statement ends, with whatever else stands on that line."""
    last = node.end_lineno or node.lineno
    if last < len(module.line_starts):
        position = module.line_starts[last]
        ending = module.newline if position < len(module.data) or module.data.endswith((b"\n", b"\r")) else ""
        return Edit(position, position, text + ending)
    return Edit(len(module.data), len(module.data), module.newline + text)


def shares_its_line(module: PythonModule, node: ast.stmt) -> bool:
    """Whether other code stands before or behind a statement on its line."""
    return bool(indent_of(module, node).strip()) or is_followed(module, node)


def is_followed(module: PythonModule, node: ast.stmt) -> bool:
    """Whether a statement stands behind this one on its last line."""
    return module.data[module.end(node) :].lstrip(b" \t").startswith(b";")


def add_imports(module: PythonModule, statements: Iterable[str]) -> list[Edit]:
    """Insertions of import statements below those at the top of a module."""
    body = module.tree.body
    count = 0
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        count = 1  # a docstring
    while count < len(body) and isinstance(body[count], (ast.Import, ast.ImportFrom)):
        count += 1
    if not count:
        start = module.line_starts[first_line(body[0]) - 1] if body else 0
        return [Edit(start, start, line + module.newline, is_line=True) for line in statements]
    return lines_below(module, body[count - 1], statements)


def lines_below(module: PythonModule, last: ast.stmt, statements: Iterable[str]) -> list[Edit]:
    """Insertions of statements below another one, beside others that may be put there."""
    if shares_its_line(module, last):
        end = module.end(last)
        return [Edit(end, end, f"; {line}", is_line=True) for line in statements]
    # At the end of the line, not at the start of the next: what stands there may be edited, too.
    end = module.end(last) + len(module.line_text(last.end_lineno or 1).encode()) - (last.end_col_offset or 0)
    return [Edit(end, end, module.newline + line, is_line=True) for line in statements]
