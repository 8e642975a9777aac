"""The walk over the expressions that lie on lines of interest, with their ancestors and shadowed names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from torchferry.source.module import PythonModule
from torchferry.source.scopes import Scope, Unit, all_arguments, any_line_in

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_BINDING = (ast.Lambda, *_COMPREHENSIONS)
_WITHOUT_CHILDREN = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


class Place(NamedTuple):
    """Where the walk stands: the statement, its scope, the nodes above, the names that expressions rebind."""

    statement: ast.stmt
    scope: Scope
    ancestors: tuple[ast.AST, ...]  # from the unit down to the parent
    shadowed: frozenset[str]


Visitor = Callable[[ast.AST, Place], None]


def walk_lines(module: PythonModule, lines: list[int], visitors: dict[type[ast.AST], Visitor]) -> None:
    """Call the visitor of each node type for the nodes that touch one of the (sorted) lines."""
    for unit in module.scopes.units:
        if any_line_in(lines, unit.first_line, unit.last_line):
            _walk(unit.node, Place(unit.statement, unit.scope, (), frozenset()), lines, visitors)


def walk_all(unit: Unit, visit: Visitor) -> None:
    """Visit every node of one unit, whatever its line."""
    stack: list[tuple[ast.AST, Place]] = [(unit.node, Place(unit.statement, unit.scope, (), frozenset()))]
    while stack:
        node, place = stack.pop()
        visit(node, place)
        inner = place._replace(ancestors=(*place.ancestors, node))
        stack.extend((child, inner) for child in ast.iter_child_nodes(node))


def _walk(node: ast.AST, place: Place, lines: list[int], visitors: dict[type[ast.AST], Visitor]) -> None:
    visitor = visitors.get(type(node))
    if visitor is not None:
        visitor(node, place)
    inner: Place | None = None
    for child in ast.iter_child_nodes(node):
        line = getattr(child, "lineno", None)
        # Nodes without a position (arguments, comprehension, context) are passed through.
        if line is not None and not any_line_in(lines, line, child.end_lineno):  # type: ignore[attr-defined]
            continue
        if line is None and isinstance(child, _WITHOUT_CHILDREN):
            continue
        if inner is None:
            shadowed = place.shadowed | _rebound_by(node) if isinstance(node, _BINDING) else place.shadowed
            inner = Place(place.statement, place.scope, (*place.ancestors, node), shadowed)
        if isinstance(node, ast.comprehension) and child is node.iter:
            _walk(child, _outside_of(node, inner), lines, visitors)
        else:
            _walk(child, inner, lines, visitors)


def _outside_of(node: ast.comprehension, place: Place) -> Place:
    """The first source of a comprehension is evaluated where the comprehension's own names are not bound yet."""
    around = place.ancestors[-2] if len(place.ancestors) > 1 else None
    if isinstance(around, _COMPREHENSIONS) and around.generators[0] is node:
        return place._replace(shadowed=place.shadowed - _rebound_by(around))
    return place


def _rebound_by(node: ast.AST) -> frozenset[str]:
    """Names that a lambda or a comprehension binds for the expressions inside it."""
    if isinstance(node, ast.Lambda):
        return frozenset(argument.arg for argument in all_arguments(node.args))
    if isinstance(node, _COMPREHENSIONS):
        return frozenset(
            name.id
            for generator in node.generators
            for name in ast.walk(generator.target)
            if isinstance(name, ast.Name)
        )
    return frozenset()
