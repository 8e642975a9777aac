"""Places that keep a value under a name: variables and parameters, attributes and keys, what a function returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchferry.conversion.program.functions import FunctionNode, is_self
from torchferry.conversion.site import FileContext, Site, enclosing_class
from torchferry.source.names import called_name
from torchferry.source.scopes import Scope, any_line_in
from torchferry.source.walk import WalkState, walk_all

AnySite = Site[Any]
GETTERS = frozenset({"get", "setdefault", "pop", "getattr", "getenv", "get_setting", "get_option"})
# Attributes that many unrelated things have: what is done with one of them says nothing about another.
_COMMON = frozenset({"name", "type", "value", "key", "kind", "mode", "id", "data", "text", "label", "_name"})


@dataclass(frozen=True)
class Variable:
    """A name of a module, a function (a parameter, too) or a class."""

    path: str
    owner: ast.AST  # the node of its scope
    name: str


@dataclass(frozen=True)
class Member:
    """An attribute, a field, an option or a key: whatever is asked of an object by its name."""

    path: str
    owner: ast.ClassDef | None  # the class that has it, where that is known
    name: str

    @property
    def is_common(self) -> bool:
        return self.name in _COMMON


@dataclass(frozen=True)
class ReturnValue:
    """What a function returns, or one element of the tuple that it returns."""

    path: str
    function: FunctionNode
    index: int | None = None


@dataclass(frozen=True)
class Keys:
    """The keys of a dictionary that a variable holds."""

    of: Variable

    @property
    def path(self) -> str:
        return self.of.path


Slot = Variable | Member | ReturnValue | Keys


def mentions(view: FileContext, word: str) -> tuple[AnySite, ...]:
    """Where a module has this name: as a variable, an attribute, a keyword, a whole string."""
    if word not in view.mentions:
        view.mentions[word] = tuple(_mentions(view, word)) if word.isidentifier() else ()
    return view.mentions[word]


def _mentions(view: FileContext, word: str) -> Iterator[AnySite]:
    module = view.module
    lines = sorted(module.lines_with_names((word,)))
    module.focus(lines)
    found: list[AnySite] = []

    def visit(node: ast.AST, place: WalkState) -> None:
        if (
            (isinstance(node, ast.Name) and node.id == word)
            or (isinstance(node, ast.Attribute) and node.attr == word)
            or (isinstance(node, ast.Constant) and node.value == word)
            or (isinstance(node, ast.keyword) and node.arg == word)
        ):
            found.append(Site(view, node, place))

    for unit in module.scopes.units:
        if any_line_in(lines, unit.first_line, unit.last_line):
            walk_all(unit, visit)
    yield from found


def around(site: AnySite) -> AnySite | None:
    """The site of the node above."""
    parent, outer = site.place.parent, site.place.outer
    return Site(site.context, parent, outer) if parent is not None and outer is not None else None


def scope_of(view: FileContext, node: ast.AST) -> Scope | None:
    """The scope that belongs to a module, a class or a function."""
    return next((scope for scope in view.module.scopes.scopes if scope.node is node), None)


def variable(site: AnySite, name: str, scope: Scope | None = None) -> Slot:
    """The variable of this name at a site; of a class it is an attribute."""
    scope = scope or site.scope
    owner = scope.owner_of(name) or scope
    if isinstance(owner.node, ast.ClassDef):
        return Member(site.context.path, owner.node, name)
    return Variable(site.context.path, owner.node, name)


def member(site: AnySite, owner: ast.expr, name: str) -> Member:
    """The attribute or key `name` of an object; of `self` it belongs to the class around."""
    scope = enclosing_class(site.scope) if is_self(owner) else None
    node = scope.node if scope is not None else None
    return Member(site.context.path, node if isinstance(node, ast.ClassDef) else None, name)


def text_of(node: ast.AST | None) -> str:
    """The value of a string constant, else ""."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def key_of(node: ast.AST) -> tuple[ast.expr, str] | None:
    """The object and the name in `x["name"]`, `x.get("name")` and `getattr(x, "name")`."""
    if isinstance(node, ast.Subscript) and text_of(node.slice):
        return node.value, text_of(node.slice)
    if not isinstance(node, ast.Call) or called_name(node) not in GETTERS:
        return None
    if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
        return (node.args[0], text_of(node.args[1])) if text_of(node.args[1]) else None
    if isinstance(node.func, ast.Attribute) and node.args and text_of(node.args[0]):
        return node.func.value, text_of(node.args[0])
    return None


def target_slots(site: AnySite, target: ast.AST) -> tuple[Slot, ...]:
    """What an assignment to a target sets."""
    if isinstance(target, ast.Name):
        return (variable(site, target.id),)
    if isinstance(target, ast.Attribute):
        return (member(site, target.value, target.attr),)
    key = key_of(target)
    return (member(site, *key),) if key else ()


def keys_of(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """The keys of the dictionaries that these variables hold."""
    return tuple(Keys(slot) for slot in slots if isinstance(slot, Variable))
