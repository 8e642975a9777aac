"""Where the value of a variable, an attribute, a key or a function is read, in its own module and in others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.program.callees import callee_of, lookup_of, related
from torchferry.conversion.program.definitions import ProjectDefinition
from torchferry.conversion.program.functions import (
    FUNCTIONS,
    FunctionNode,
    argument_for,
    is_self,
    with_defaults,
)
from torchferry.conversion.program.neighbours import Import
from torchferry.conversion.program.slots import (
    AnySite,
    Member,
    ReturnValue,
    Variable,
    around,
    key_of,
    mentions,
    scope_of,
)
from torchferry.conversion.site import FileContext, Site, enclosing_class
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import BindingKind, Scope
from torchferry.source.walk import WalkState


def reads_of(view: FileContext, slot: Variable | Member | ReturnValue) -> Iterator[AnySite]:
    """The expressions of the slot's own module that have its value."""
    if isinstance(slot, Variable):
        scope = scope_of(view, slot.owner)
        for site in mentions(view, slot.name):
            if isinstance(site.node, ast.Name) and isinstance(site.node.ctx, ast.Load):
                known = site.scope.owner_of(slot.name)
                # A name that only an expression binds (a comprehension's) has no owner.
                if known is scope if known is not None else _within(site.scope, scope):
                    yield site
    elif isinstance(slot, Member):
        yield from _reads_of_member(view, slot)
    elif {"property", "cached_property"} & set(map(last_name, slot.function.decorator_list)):
        scope = scope_of(view, slot.function)
        owner = scope.parent.node if scope and scope.parent else None
        class_node = owner if isinstance(owner, ast.ClassDef) else None
        yield from _reads_of_member(view, Member(slot.path, class_node, slot.function.name))
    else:
        yield from calls_of(view, slot.function, slot.function.name)


def distant_reads_of(view: FileContext, slot: Variable | Member | ReturnValue) -> Iterator[AnySite]:
    """The same in modules that import the slot's own, or that this one imports and may give the object to."""
    name = slot.function.name if isinstance(slot, ReturnValue) else slot.name
    if isinstance(slot, Member):
        if not slot.is_common:
            yield from _distant_reads_of_member(view, slot)
        return
    is_global = isinstance(slot, ReturnValue) or isinstance(slot.owner, ast.Module)
    if not is_global or name not in view.module.scopes.root.bindings:
        return
    for item in view.neighbours.importers(slot.path, name):
        other = view.beside(item.path)
        if other is None or item.name not in (name, ""):
            continue
        if isinstance(slot, ReturnValue):
            yield from calls_of(other, slot.function, item.alias if item.name else name)
        else:
            yield from _imported_reads(other, item, name)


def calls_of(view: FileContext, function: ast.AST, name: str) -> Iterator[AnySite]:
    """The calls of a function in a module, by the name that it has there."""
    for site in mentions(view, name):
        call = around(site)
        if call is not None and isinstance(call.node, ast.Call) and call.node.func is site.node:
            callee = callee_of(call, site.node)
            if callee is not None and callee.node is function:
                yield call


def _reads_of_member(view: FileContext, slot: Member) -> Iterator[AnySite]:
    for site in mentions(view, slot.name):
        node = site.node
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if _may_be(view, slot, site, node.value):
                yield site
        elif isinstance(node, ast.Constant):
            asked = around(site)
            key = key_of(asked.node) if asked else None
            if asked and key and key[1] == slot.name and _may_be(view, slot, asked, key[0]):
                if not isinstance(asked.node, ast.Subscript) or isinstance(asked.node.ctx, ast.Load):
                    yield asked
        elif isinstance(node, ast.Name) and slot.owner is not None:
            if site.scope.node is slot.owner:
                yield site


def _may_be(view: FileContext, slot: Member, site: AnySite, receiver: ast.expr) -> bool:
    """Whether the object in question may be the one that has this attribute."""
    if is_self(receiver):
        around_use = enclosing_class(site.scope)
        node = around_use.node if around_use else None
        if slot.owner is None or not isinstance(node, ast.ClassDef):
            return not slot.is_common
        return related(view, slot.owner, node)
    return not slot.is_common and site.qualified(receiver).partition(".")[0] != "torch"


def _distant_reads_of_member(view: FileContext, slot: Member) -> Iterator[AnySite]:
    if slot.owner is not None:
        for base in lookup_of(view).all_bases(ProjectDefinition(view, slot.owner)):
            if base.file is not view and isinstance(base.node, ast.ClassDef):
                yield from _reads_of_member(base.file, Member(base.file.path, base.node, slot.name))
    neighbours = view.neighbours
    near = {item.path for item in neighbours.importers_with_member(slot.path, slot.name)}
    imported = neighbours.imported(slot.path, view.module)
    near |= {path for path in imported if neighbours.has_member(path, slot.name)}
    for path in sorted(near):
        other = view.beside(path)
        if other is not None:
            yield from _reads_of_member(other, Member(path, None, slot.name))


def _imported_reads(view: FileContext, item: Import, name: str) -> Iterator[AnySite]:
    """`from config import WHERE as w` ... `w`, or `import config` ... `config.WHERE`"""
    wanted = ast.Name if item.name else ast.Attribute
    for site in mentions(view, item.alias if item.name else name):
        node = site.node
        if not isinstance(node, wanted) or not isinstance(node.ctx, ast.Load):
            continue
        if item.is_star:
            is_it = site.scope.owner_of(item.alias) is None
        else:
            binding = resolved.binding if (resolved := site.resolve(node)) else None
            # By what is imported: the module may be the one that is being converted, and no longer as in its file.
            is_it = binding is not None and binding.qualified == item.binding.qualified
        if is_it:
            yield site


def _within(scope: Scope | None, outer: Scope | None) -> bool:
    return scope is not None and (scope is outer or _within(scope.parent, outer))


# What is put into a variable, an attribute, a key or a function's result.

Source = Site[ast.expr]


def sources_of(view: FileContext, slot: Variable | Member | ReturnValue) -> Iterator[Source]:
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
            # Its default, and what the calls in this module say.
            for argument, default in with_defaults(slot.owner.args):
                if argument.arg == slot.name and default is not None and scope and scope.parent:
                    yield _source(view, default, scope.parent)
            yield from _of_calls(view, view, slot.owner, slot.name, "")
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
                yield Site(site.context, value, WalkState(statement, site.scope))


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
    for call in calls_of(view, definition, alias or called):
        callee = callee_of(call, call.node.func)
        runs = lookup_of(view).runs(callee) if callee else None
        given = argument_for(call.node, function, name, runs.given if runs else 0)
        if given is not None:
            yield Site(view, given, call.place)


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


def _of_result(view: FileContext, slot: ReturnValue) -> Iterator[Source]:
    scope = scope_of(view, slot.function)
    view.module.focus(list(range(slot.function.lineno, (slot.function.end_lineno or 0) + 1)))
    for unit in view.module.scopes.units:
        if unit.scope is scope and isinstance(unit.node, ast.Return) and unit.node.value is not None:
            value = unit.node.value
            if slot.index is None:
                yield _source(view, value, unit.scope)
            elif isinstance(value, ast.Tuple) and slot.index < len(value.elts):
                yield _source(view, value.elts[slot.index], unit.scope)


def _source(view: FileContext, value: ast.expr, scope: Scope) -> Source:
    statement: ast.stmt = ast.Expr(value)
    return Site(view, value, WalkState(statement, scope))
