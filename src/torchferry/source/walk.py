"""The walk over the expressions that lie on lines of interest, with their ancestors and shadowed names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from torchferry.source.module import PythonModule
from torchferry.source.scopes import Scope, Unit, all_arguments, any_line_in

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_BINDING = (ast.Lambda, *_COMPREHENSIONS)
_WITHOUT_CHILDREN = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


class WalkState(NamedTuple):
    """Where the walk stands: the statement, its scope, the node above, the names that expressions rebind."""

    statement: ast.stmt
    scope: Scope
    shadowed: frozenset[str] = frozenset()
    parent: ast.AST | None = None
    outer: WalkState | None = None  # the place of the parent

    def below(self, node: ast.AST, shadowed: frozenset[str]) -> WalkState:
        """The place of the children of a node that stands here."""
        return WalkState(self.statement, self.scope, shadowed, node, self)

    def upwards(self) -> Iterator[ast.AST]:
        """The nodes above, from the parent up to the unit."""
        place: WalkState | None = self
        while place is not None and place.parent is not None:
            yield place.parent
            place = place.outer

    @property
    def ancestors(self) -> tuple[ast.AST, ...]:
        """The nodes above, from the unit down to the parent."""
        return tuple(self.upwards())[::-1]


Visitor = Callable[[ast.AST, WalkState], None]
_Waiting = list[
    tuple[ast.AST, WalkState]
]  # a stack: expressions may be nested more deeply than functions may


def walk_lines(module: PythonModule, lines: list[int], visitors: dict[type[ast.AST], Visitor]) -> None:
    """Call the visitor of each node type for the nodes that touch one of the (sorted) lines."""
    for unit in module.scopes.units:
        if not any_line_in(lines, unit.first_line, unit.last_line):
            continue
        waiting: _Waiting = [(unit.node, WalkState(unit.statement, unit.scope))]
        while waiting:
            node, place = waiting.pop()
            visitor = visitors.get(type(node))
            if visitor is not None:
                visitor(node, place)
            waiting.extend(reversed(_children(node, place, lines)))


def nodes_on_lines(module: PythonModule, lines: list[int]) -> Iterator[ast.AST]:
    """The nodes that touch one of the (sorted) lines, and what has no position of its own."""
    waiting: list[ast.AST] = [module.tree] if lines else []
    while waiting:
        node = waiting.pop()
        yield node
        for child in child_nodes(node):
            first = getattr(child, "lineno", None)
            if first is None or any_line_in(lines, first, child.end_lineno):  # type: ignore[attr-defined]
                waiting.append(child)


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """What ast.iter_child_nodes yields, without its two generators: all walks come through here."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def walk_all(unit: Unit, visit: Visitor) -> None:
    """Visit every node of one unit, whatever its line."""
    waiting: _Waiting = [(unit.node, WalkState(unit.statement, unit.scope))]
    while waiting:
        node, place = waiting.pop()
        visit(node, place)
        inner = _below(node, place)
        children = [(child, inner) for child in reversed(child_nodes(node))]
        if isinstance(node, ast.comprehension):
            outside = _outside_of(node, place, inner)
            children = [(child, outside if child is node.iter else inner) for child, _ in children]
        waiting.extend(children)


def _children(node: ast.AST, place: WalkState, lines: list[int]) -> _Waiting:
    """The children that touch one of the lines, with their places."""
    found: _Waiting = []
    inner: WalkState | None = None
    for child in child_nodes(node):
        line = getattr(child, "lineno", None)
        # Nodes without a position (arguments, comprehension, context) are passed through.
        if line is not None and not any_line_in(lines, line, child.end_lineno):  # type: ignore[attr-defined]
            continue
        if line is None and isinstance(child, _WITHOUT_CHILDREN):
            continue
        if inner is None:
            inner = _below(node, place)
        if isinstance(node, ast.comprehension) and child is node.iter:
            found.append((child, _outside_of(node, place, inner)))
        else:
            found.append((child, inner))
    return found


def _below(node: ast.AST, place: WalkState) -> WalkState:
    """The place of the children of a node, with the names that the node itself binds."""
    shadowed = place.shadowed | rebound_by(node) if isinstance(node, _BINDING) else place.shadowed
    return place.below(node, shadowed)


def _outside_of(node: ast.comprehension, place: WalkState, inner: WalkState) -> WalkState:
    """The first source of a comprehension is evaluated where the comprehension's own names are not bound yet."""
    around = place.parent
    if around is not None and evaluated_outside(node, node.iter, around):
        return inner._replace(shadowed=inner.shadowed - rebound_by(around))
    return inner


def evaluated_outside(node: ast.comprehension, child: ast.AST, around: ast.AST | None) -> bool:
    """Whether a part of a comprehension's clause is its first source, which knows nothing of its names."""
    is_first = isinstance(around, _COMPREHENSIONS) and around.generators[0] is node
    return is_first and child is node.iter


def rebound_by(node: ast.AST) -> frozenset[str]:
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
