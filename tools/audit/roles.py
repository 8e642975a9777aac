"""Where a string's value goes: the role of a literal, found by climbing from it to what uses it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .names import called
from .tree import FUNCTIONS, Tree


@dataclass(frozen=True)
class Role:
    """A use of a string: its kind, the names that say what it means, and the call it is an argument of."""

    kind: str
    names: tuple[str, ...] = ()
    call: ast.Call | None = None
    index: int = -1
    siblings: tuple[str, ...] = field(default=())


def role_of(tree: Tree, node: ast.AST) -> Role:
    """The role of a string literal."""
    siblings: list[str] = []
    child = node
    while (parent := tree.parent(child)) is not None:
        if isinstance(parent, (ast.Tuple, ast.List, ast.Set)):
            siblings += [
                item.value
                for item in parent.elts
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
        elif not _transparent(parent, child):
            return _final(tree, parent, child, tuple(siblings))
        child = parent
    return Role("other")


def _transparent(parent: ast.AST, child: ast.AST) -> bool:
    """Whether the parent's value is (part of) the same device or backend string."""
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Add) or (isinstance(parent.op, ast.Mod) and parent.left is child)
    if isinstance(parent, ast.IfExp):
        return parent.test is not child
    if isinstance(parent, ast.Attribute):
        return parent.attr == "format"
    if isinstance(parent, ast.Call):
        func = parent.func
        return func is child or (
            isinstance(func, ast.Name) and func.id in ("list", "tuple", "set", "sorted", "str")
        )
    if isinstance(parent, ast.JoinedStr):
        texts = [item.value for item in parent.values if isinstance(item, ast.Constant)]
        return all(isinstance(text, str) and text.strip("0123456789:") == "" for text in texts)
    return isinstance(parent, (ast.BoolOp, ast.Starred, ast.NamedExpr, ast.FormattedValue))


def _final(tree: Tree, parent: ast.AST, child: ast.AST, siblings: tuple[str, ...]) -> Role:
    if isinstance(parent, ast.keyword):
        call = tree.parent(parent)
        if isinstance(call, ast.Call):
            field_of = _field(tree, call) if parent.arg in ("default", "default_factory") else None
            if field_of is not None:
                return Role("assign", tuple(target_names(field_of.target)), siblings=siblings)
            return Role("keyword", (parent.arg or "",), call, siblings=siblings)
        return Role("other")
    if isinstance(parent, ast.Call):
        index = next((at for at, item in enumerate(parent.args) if item is child), -1)
        return Role("argument", (called(parent.func),), parent, index, siblings)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
        return Role("file")
    if isinstance(parent, ast.Compare):
        return _compare(parent, child, siblings)
    if isinstance(parent, ast.Dict):
        return _dict(parent, child, siblings)
    if isinstance(parent, ast.Subscript):
        return Role(
            "key" if parent.slice is child else "sliced", tuple(names_in(parent.value)), siblings=siblings
        )
    if isinstance(parent, ast.Assign):
        return Role(
            "assign",
            tuple(name for target in parent.targets for name in target_names(target)),
            siblings=siblings,
        )
    if isinstance(parent, (ast.AnnAssign, ast.AugAssign)):
        kind = "annotation" if isinstance(parent, ast.AnnAssign) and parent.annotation is child else "assign"
        return Role(kind, tuple(target_names(parent.target)), siblings=siblings)
    if isinstance(parent, ast.arguments):
        return Role("default", (_parameter(parent, child),), siblings=siblings)
    if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
        return Role("loop", tuple(target_names(parent.target)), siblings=siblings)
    if isinstance(parent, (ast.Return, ast.Yield, ast.Lambda)):
        owner = tree.enclosing(parent, FUNCTIONS)
        name = owner.name if isinstance(owner, FUNCTIONS) else ""
        if isinstance(parent, ast.Lambda):
            return Role("lambda", (name,))
        return Role("return", (name,), siblings=siblings)
    if isinstance(parent, ast.Expr):
        return Role("bare")
    if isinstance(parent, (ast.Assert, ast.Raise)):
        return Role("message")
    return Role(type(parent).__name__.lower(), siblings=siblings)


def _field(tree: Tree, call: ast.Call) -> ast.AnnAssign | None:
    """The dataclass field that a `field(default=...)` gives its value to."""
    parent = tree.parent(call)
    made = called(call.func).lower().endswith(("field", "option", "argument")) and isinstance(
        parent, ast.AnnAssign
    )
    return parent if made and isinstance(parent, ast.AnnAssign) else None


def _compare(parent: ast.Compare, child: ast.AST, siblings: tuple[str, ...]) -> Role:
    others = [item for item in (parent.left, *parent.comparators) if item is not child]
    names = tuple(name for item in others for name in names_in(item))
    contains = isinstance(parent.ops[0], (ast.In, ast.NotIn)) and parent.left is child
    return Role("contains" if contains else "compare", names, siblings=siblings)


def _dict(parent: ast.Dict, child: ast.AST, siblings: tuple[str, ...]) -> Role:
    for key, value in zip(parent.keys, parent.values, strict=True):
        if key is child:
            return Role("key", siblings=siblings)
        if value is child:
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
            return Role("value", (name,), siblings=siblings)
    return Role("other")


def _parameter(arguments: ast.arguments, default: ast.AST) -> str:
    positional = [*arguments.posonlyargs, *arguments.args]
    for arg, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        if value is default:
            return arg.arg
    for arg, item in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if item is default:
            return arg.arg
    return ""


def names_in(node: ast.AST) -> list[str]:
    """The names by which an expression is known: variables, attributes, callees, constant keys."""
    found: list[str] = []
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            found.append(item.id)
        elif isinstance(item, ast.Attribute):
            found.append(item.attr)
        elif isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Constant):
            found.append(str(item.slice.value))
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        found.append(str(node.args[0].value))
    return found


def target_names(node: ast.AST) -> list[str]:
    """The names an assignment binds; for `x['key'] = ...` the key."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Subscript):
        return [str(node.slice.value)] if isinstance(node.slice, ast.Constant) else target_names(node.value)
    if isinstance(node, (ast.Tuple, ast.List)):
        return [name for item in node.elts for name in target_names(item)]
    return []
