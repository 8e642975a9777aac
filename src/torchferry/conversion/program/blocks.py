"""Statements in their blocks: who is around whom, and the edits that put statements into a new block."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule

# Where new lines go in a module.


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
    if body and is_docstring(body[0]):
        count = 1
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


DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_STRING_STARTS = {
    getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name)
}
_STRING_ENDS = {getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name)}


def blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements directly below a module or a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block
    for branch in branches_of(node):
        yield branch.body


def branches_of(node: ast.AST) -> Iterator[ast.ExceptHandler | ast.match_case]:
    """The parts of a statement that hold a block and are no statements themselves."""
    yield from getattr(node, "handlers", ())
    yield from getattr(node, "cases", ())


def statements_below(node: ast.AST, into_definitions: bool = False) -> Iterator[ast.stmt]:
    """Every statement inside a module, a function or a compound statement, in the order of the text."""
    for block in blocks_of(node):
        for statement in block:
            yield statement
            if into_definitions or not isinstance(statement, DEFINITIONS):
                yield from statements_below(statement, into_definitions)


def heads_of(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement without those of its blocks: all of a simple one, the head of a compound one."""
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "handlers", "cases"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield item


def is_elif(module: PythonModule, statement: ast.stmt) -> bool:
    """Whether a statement is a further condition of the `if` above it, and so no statement of its own block."""
    return isinstance(statement, ast.If) and module.data.startswith(b"elif", module.start(statement))


def is_main_guard(statement: ast.stmt) -> bool:
    """if __name__ == "__main__":"""
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)
    )


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a bare constant: as the first one of a block it is a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def block_around(root: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements, somewhere below a node, that a statement stands in; itself if it is not there."""
    found = (block for node in ast.walk(root) for block in blocks_of(node))
    return next((block for block in found if any(item is statement for item in block)), [statement])


class Position(NamedTuple):
    """Where a statement stands: the statement, branch of one (except, case) or module around it, and the block there."""

    parent: ast.AST
    block: list[ast.stmt]


class StatementTree:
    """The way up from each statement of a module."""

    def __init__(self, root: ast.Module) -> None:
        self.root = root
        self._positions: dict[ast.AST, Position] = {}
        waiting: list[ast.AST] = [root]
        while waiting:
            node = waiting.pop()
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    self._positions.update((statement, Position(node, block)) for statement in block)
                    waiting += block
            for branch in branches_of(node):
                self._positions[branch] = Position(node, [])
                waiting.append(branch)

    def position(self, statement: ast.stmt) -> Position:
        return self._positions[statement]

    def owners(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """What is around a statement, from the nearest to the module: statements, and branches of them."""
        position = self._positions.get(statement)
        while position is not None:
            yield position.parent
            position = self._positions.get(position.parent)

    def upwards(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        """The compound statements around a statement, the nearest first."""
        return (node for node in self.owners(statement) if isinstance(node, ast.stmt))

    def holder(self, statement: ast.stmt, *sorts: type[ast.AST]) -> ast.AST:
        """The nearest statement of these sorts around a statement; the module if there is none."""
        return next((node for node in self.upwards(statement) if isinstance(node, sorts)), self.root)

    def path(self, statement: ast.stmt, top: ast.AST) -> list[ast.stmt]:
        """The statements from the one directly in a block of `top` down to this one."""
        found = [statement]
        for node in self.upwards(statement):
            if node is top:
                break
            found.append(node)
        return found[::-1]


def has_own_lines(module: PythonModule, first: ast.stmt, last: ast.stmt) -> bool:
    """Whether nothing else than comments stands on the lines of a run of statements."""
    if indent_of(module, first).strip():
        return False
    rest = module.data[module.end(last) :].splitlines()
    return not rest or re.match(rb"[ \t\f]*(?:#|$)", rest[0]) is not None


def indent_unit(module: PythonModule, statement: ast.stmt, tree: StatementTree) -> str:
    """One step of indentation, as this part of the module writes it."""
    own = indent_of(module, statement)
    parent = next(tree.upwards(statement), None)
    if parent is not None:
        outer = indent_of(module, parent)
        if own.startswith(outer) and own != outer and not own.strip():
            return own[len(outer) :]
    match = re.search(rb"\n([ \t]+)\S", module.data)
    return match.group(1).decode() if match and not own and len(match.group(1)) <= 8 else "    "


def block_edits(
    module: PythonModule, statements: Sequence[ast.stmt], header: str, tree: StatementTree
) -> list[Edit]:
    """Put whole lines of statements below a new `header`; the lines inside of a string keep their text."""
    unit = indent_unit(module, statements[0], tree)
    first, last = first_line(statements[0]), statements[-1].end_lineno or statements[-1].lineno
    fixed = _lines_in_strings(module)
    indent = indent_of(module, statements[0])
    # Tabs and spaces in one indentation: Python compares them from the left, so that new ones go behind.
    kept = indent.encode() if len(set(indent + unit)) > 1 else b""
    edits = [
        Edit(
            module.line_starts[first - 1], module.line_starts[first - 1], f"{indent}{header}{module.newline}"
        )
    ]
    for line in range(first, last + 1):
        if line == first or (line not in fixed and module.line_text(line).strip()):
            start = module.line_starts[line - 1]
            start += len(kept) if module.data.startswith(kept, start) else 0
            edits.append(Edit(start, start, unit))
    return edits


def _lines_in_strings(module: PythonModule) -> set[int]:
    """The lines whose beginning lies inside of a string."""
    text = re.sub("\r\n|\r", "\n", module.decoded.text)
    found: set[int] = set()
    opened: list[int] = []  # the lines on which f-strings begin that are still open
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type in _STRING_STARTS:
            opened.append(token.start[0])
        elif token.type in _STRING_ENDS and opened:
            found.update(range(opened.pop() + 1, token.end[0] + 1))
    return found
