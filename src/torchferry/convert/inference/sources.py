"""What is put into a variable, an attribute, a key or a function's result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.inference.callees import callee_of, related
from torchferry.convert.inference.reads import calls_of
from torchferry.convert.inference.slots import (
    FUNCTIONS,
    AnySite,
    FunctionNode,
    Member,
    Result,
    Variable,
    around,
    is_self,
    mentions,
    scope_of,
)
from torchferry.convert.site import FileContext, Site, enclosing_class
from torchferry.source.names import called_name
from torchferry.source.scopes import BindingKind, Scope
from torchferry.source.walk import Place

Source = Site[ast.expr]


def sources_of(view: FileContext, slot: Variable | Member | Result) -> Iterator[Source]:
    """The expressions of the slot's own module whose values it gets."""
    if isinstance(slot, Variable):
        yield from _of_variable(view, slot)
    elif isinstance(slot, Member):
        yield from _of_member(view, slot)
    else:
        yield from _of_result(view, slot)


def _of_variable(view: FileContext, slot: Variable) -> Iterator[Source]:
    mentions(view, slot.name)  # reads the functions that have the name
    scope = scope_of(view, slot.owner)
    for binding in scope.bindings.get(slot.name, ()) if scope else ():
        if binding.kind is BindingKind.PARAMETER and isinstance(slot.owner, FUNCTIONS):
            yield from _of_parameter(view, slot.owner, slot.name)
        elif binding.kind is BindingKind.ASSIGN and binding.value is not None and scope is not None:
            yield _source(view, binding.value, scope)
    for site in mentions(view, slot.name):
        if isinstance(site.node, ast.Name) and isinstance(site.node.ctx, ast.Store):
            if site.scope.owner_of(slot.name) is scope and isinstance(site.parent, (ast.Tuple, ast.List)):
                yield from _of_unpacking(site)


def _of_unpacking(site: AnySite) -> Iterator[Source]:
    """`a, b = x, y`: the element that stands where the name stands."""
    statement, targets = site.place.statement, site.parent
    if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Tuple, ast.List)):
        assert isinstance(targets, (ast.Tuple, ast.List))
        for target, value in zip(targets.elts, statement.value.elts, strict=False):
            if target is site.node:
                yield Site(site.context, value, Place(statement, site.scope))


def _of_parameter(view: FileContext, function: FunctionNode, name: str) -> Iterator[Source]:
    """Its default, and what the calls in this module say."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    pairs = [
        *zip(with_default, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    scope = scope_of(view, function)
    for argument, default in pairs:
        if argument.arg == name and default is not None and scope and scope.parent:
            yield _source(view, default, scope.parent)
    yield from _of_calls(view, view, function, name, "")


def distant_sources_of(view: FileContext, slot: Variable) -> Iterator[Source]:
    """What calls in other modules give to a parameter."""
    if isinstance(slot.owner, FUNCTIONS):
        _, called = _constructed(view, slot.owner)
        for item in view.neighbours.importers(slot.path, called):
            other = view.beside(item.path)
            if other is not None and item.name in (called, ""):
                yield from _of_calls(other, view, slot.owner, slot.name, item.alias if item.name else "")


def _of_calls(
    view: FileContext, home: FileContext, function: FunctionNode, name: str, alias: str
) -> Iterator[Source]:
    """The arguments that the calls in a module give to a parameter of a function of the module `home`."""
    definition, called = _constructed(home, function)
    positional = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    for call in calls_of(view, definition, alias or called):
        callee = callee_of(call, call.node.func)
        skipped = 1 if definition is not function else callee.given if callee else 0
        index = positional.index(name) - skipped if name in positional else -1
        if 0 <= index < len(call.node.args):
            yield Site(view, call.node.args[index], call.place)
        yield from (Site(view, item.value, call.place) for item in call.node.keywords if item.arg == name)


def _constructed(view: FileContext, function: FunctionNode) -> tuple[ast.AST, str]:
    """What is called to call a function, and its name: for __init__ it is the class."""
    scope = scope_of(view, function)
    around_it = scope.parent.node if scope and scope.parent else None
    if function.name == "__init__" and isinstance(around_it, ast.ClassDef):
        return around_it, around_it.name
    return function, function.name


def _of_member(view: FileContext, slot: Member) -> Iterator[Source]:
    for site in mentions(view, slot.name):
        node, statement = site.node, site.place.statement
        if isinstance(node, ast.keyword):
            call = around(site)
            if call and called_name(call.node) in ("dict", "SimpleNamespace", "Namespace", "update"):
                yield Site(view, node.value, site.place)
        elif isinstance(node, ast.Constant):
            yield from _of_key(site)
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            value = getattr(statement, "value", None)
            if isinstance(value, ast.expr) and site.parent is statement and _belongs(view, slot, site):
                yield Site(view, value, site.place)


def _belongs(view: FileContext, slot: Member, site: AnySite) -> bool:
    node = site.node
    around_it = enclosing_class(site.scope)
    owner = around_it.node if around_it else None
    if isinstance(node, ast.Name):
        return owner is not None and site.scope.node is owner and owner is slot.owner
    if isinstance(node, ast.Attribute) and is_self(node.value):
        known = slot.owner is not None and isinstance(owner, ast.ClassDef)
        return not known or related(view, slot.owner, owner)  # type: ignore[arg-type]
    return not slot.is_common


def _of_key(site: AnySite) -> Iterator[Source]:
    """{"where": value}, x["where"] = value"""
    parent, statement = site.parent, site.place.statement
    if isinstance(parent, ast.Dict):
        for key, value in zip(parent.keys, parent.values, strict=True):
            if key is site.node:
                yield Site(site.context, value, site.place)
    elif isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
        if isinstance(statement, ast.Assign):
            yield Site(site.context, statement.value, site.place)


def _of_result(view: FileContext, slot: Result) -> Iterator[Source]:
    scope = scope_of(view, slot.function)
    view.module.focus(list(range(slot.function.lineno, (slot.function.end_lineno or 0) + 1)))
    for unit in view.module.scopes.units:
        if unit.scope is scope and isinstance(unit.node, ast.Return) and unit.node.value is not None:
            value = unit.node.value
            if slot.index is not None:
                elements = value.elts if isinstance(value, ast.Tuple) else []
                if slot.index < len(elements):
                    yield _source(view, elements[slot.index], unit.scope)
            else:
                yield _source(view, value, unit.scope)


def _source(view: FileContext, value: ast.expr, scope: Scope) -> Source:
    statement: ast.stmt = ast.Expr(value)
    return Site(view, value, Place(statement, scope))
