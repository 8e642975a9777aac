"""Where new lines go in a module."""

from __future__ import annotations

import ast

from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule


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
    if indent_of(module, node).strip():
        return True
    return module.data[module.end(node) :].lstrip(b" \t").startswith(b";")
