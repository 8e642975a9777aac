"""Names as they are written."""

from __future__ import annotations

import ast


def last_name(node: ast.AST | None) -> str:
    """The last part of a name or attribute chain, "" for anything else: `join` of `os.path.join`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def called_name(node: ast.AST | None) -> str:
    """The last part of the name of the function that a call calls, "" for anything else."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def dotted_name(node: ast.AST | None) -> str:
    """A name or attribute chain as it is written, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""
