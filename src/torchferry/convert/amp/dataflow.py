"""Which statements of a training step lead to a loss."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from torchferry.convert.blocks import heads_of, statements_below
from torchferry.convert.program import text_of

_GROWS = frozenset({"append", "extend", "add", "add_", "insert", "update", "copy_", "fill_", "setdefault"})


def used(node: ast.AST) -> Iterator[str]:
    """The variables and attributes of `self` whose values a piece of code reads; not those that it only calls."""
    called = {item.func for item in ast.walk(node) if isinstance(item, ast.Call)}
    for item in ast.walk(node):
        if item in called:
            continue
        if isinstance(item, ast.Name) and item.id != "self":
            yield item.id
        elif isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == "self":
            yield f"self.{item.attr}"


def defined(statement: ast.stmt) -> Iterator[str]:
    """The variables that a statement gives a value or adds to, its blocks not included."""
    targets: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _GROWS:
            targets = [function.value]
    for target in targets:
        yield from _names(target)
    for head in heads_of(statement):
        for node in ast.walk(head):
            if isinstance(node, ast.NamedExpr):
                yield node.target.id


def _names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _names(target.value)
    elif isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield text_of(target)


def leading_to(
    wanted: set[str], domain: Iterable[ast.stmt], last_line: int, effects: Callable[[ast.stmt], set[str]]
) -> set[ast.stmt]:
    """The statements of a domain (and of its blocks) up to a line from which the wanted variables get their values.

    `effects` says which attributes a statement sets through the methods that it calls.
    """
    statements = [
        item for top in domain for item in (top, *statements_below(top)) if item.lineno <= last_line
    ]
    sets = {item: effects(item).union(defined(item)) for item in statements}
    wanted = set(wanted)
    found: set[ast.stmt] = set()
    while True:
        more = [item for item in statements if item not in found and wanted.intersection(sets[item])]
        if not more:
            return found
        found.update(more)
        for item in more:
            for head in heads_of(item):
                wanted.update(used(head))
