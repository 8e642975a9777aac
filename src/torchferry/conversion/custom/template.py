"""Python text with a hole: how it is written around code, and how code that has it around it already is recognised."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from torchferry.source.names import dotted_name

_HOLE = "_the_hole_of_this_template"
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_OPEN = (ast.Call, ast.keyword)  # what stands in these needs no parentheses

Resolve = Callable[[ast.expr], str]


class TemplateError(ValueError):
    """The text is no Python expression, or has not the one hole that it should have."""


@dataclass(frozen=True)
class Template:
    """An expression; `{call}` or `{value}` in it stands for the code that was there before."""

    text: str
    before: str = ""
    after: str = ""
    has_hole: bool = False
    is_atom: bool = True  # can stand before a dot without parentheses
    bares_hole: bool = True  # what is put in the hole may be any expression
    depth: int = 0  # of the hole below the whole expression
    tree: ast.expr = field(default_factory=lambda: ast.Constant(None), compare=False, repr=False)

    def is_around(self, node: ast.AST, above: list[ast.AST], resolve: Resolve) -> bool:
        """Whether a node stands in this template already; `above` are its ancestors, from the nearest on."""
        return self.depth <= len(above) and _same(self.tree, [node, *above][self.depth], node, resolve)

    def is_form_of(self, node: ast.expr, resolve: Resolve) -> bool:
        """Whether an expression is this template, filled with anything."""
        return _same(self.tree, node, None, resolve)

    def names(self) -> list[str]:
        """The dotted names that the text uses."""
        found = []
        inner = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(self.tree):
            name = dotted_name(node) if id(node) not in inner else ""
            if name and name.partition(".")[0] != _HOLE:
                found.append(name)
        return found


def make_template(text: str, hole: str, required: bool) -> Template:
    """A template from its text; raises TemplateError."""
    mark = f"{{{hole}}}"
    count = text.count(mark)
    if count > 1 or (required and not count):
        raise TemplateError(f"must hold {mark} {'once' if count else 'where the call stands'}")
    tree = _expression(text.replace(mark, f"({_HOLE})"))
    path = _path_to_hole(tree)
    if count and not path:
        raise TemplateError(f"{mark} must stand where an expression can stand, not in a string")
    if not count:
        return Template(text, tree=tree, is_atom=isinstance(tree, _ATOMS))
    before, _, after = text.partition(mark)
    around = path[-2] if len(path) > 1 else None
    return Template(
        text,
        before,
        after,
        has_hole=True,
        is_atom=isinstance(tree, _ATOMS),
        bares_hole=around is None
        or (isinstance(around, _OPEN) and getattr(around, "func", None) is not path[-1]),
        depth=len(path) - 1,
        tree=tree,
    )


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(f"(\n{text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise TemplateError("is not a Python expression") from None


def _path_to_hole(tree: ast.expr) -> list[ast.AST]:
    """The nodes from the whole expression to the hole."""
    waiting: list[list[ast.AST]] = [[tree]]
    while waiting:
        path = waiting.pop()
        if isinstance(path[-1], ast.Name) and path[-1].id == _HOLE:
            return path
        waiting.extend([*path, child] for child in ast.iter_child_nodes(path[-1]))
    return []


def needs_parentheses(node: ast.expr, after: str) -> bool:
    """Whether an expression must be put in parentheses to stand beside operators, and before what comes after it."""
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))
    return not isinstance(node, _ATOMS) or (is_number and after.startswith("."))


def _same(template: ast.AST, code: ast.AST, hole: ast.AST | None, resolve: Resolve) -> bool:
    """Whether code is what a template says; its hole is one node, or anything."""
    if isinstance(template, ast.Name) and template.id == _HOLE:
        return hole is None or code is hole
    name = dotted_name(template)
    if name and isinstance(code, ast.expr) and name in (dotted_name(code), resolve(code)):
        return True
    if type(template) is not type(code):
        return False
    return all(
        _same_field(value, getattr(code, key, None), hole, resolve)
        for key, value in ast.iter_fields(template)
    )


def _same_field(value: object, other: object, hole: ast.AST | None, resolve: Resolve) -> bool:
    if isinstance(value, ast.expr_context):
        return True
    if isinstance(value, ast.AST) and isinstance(other, ast.AST):
        return _same(value, other, hole, resolve)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(
            _same_field(one, two, hole, resolve) for one, two in zip(value, other, strict=True)
        )
    return type(value) is type(other) and value == other
