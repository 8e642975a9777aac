"""Where the value of a variable, an attribute, a key or a function is read, in its own module and in others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.inference.callees import Callee, all_bases, callee_of, related
from torchferry.convert.inference.slots import (
    FUNCTIONS,
    AnySite,
    Member,
    Result,
    Variable,
    around,
    is_self,
    key_of,
    mentions,
    scope_of,
)
from torchferry.convert.neighbours import Import
from torchferry.convert.site import FileContext, enclosing_class
from torchferry.source.names import last_name
from torchferry.source.scopes import Scope


def reads_of(view: FileContext, slot: Variable | Member | Result) -> Iterator[AnySite]:
    """The expressions of the slot's own module that have its value."""
    if isinstance(slot, Variable):
        yield from _reads_of_variable(view, slot)
    elif isinstance(slot, Member):
        yield from _reads_of_member(view, slot)
    elif _is_property(slot.function):
        yield from _reads_of_member(
            view, Member(slot.path, _class_of(view, slot.function), slot.function.name)
        )
    else:
        yield from calls_of(view, slot.function, slot.function.name)


def distant_reads_of(view: FileContext, slot: Variable | Member | Result) -> Iterator[AnySite]:
    """The same in modules that import the slot's own, or that this one imports and may give the object to."""
    name = slot.function.name if isinstance(slot, Result) else slot.name
    if isinstance(slot, Member):
        if not slot.is_common:
            yield from _distant_reads_of_member(view, slot)
        return
    is_global = isinstance(slot, Result) or isinstance(slot.owner, ast.Module)
    if not is_global or name not in view.module.scopes.root.bindings:
        return
    for item in view.neighbours.importers(slot.path, name):
        other = view.beside(item.path)
        if other is None or item.name not in (name, ""):
            continue
        if isinstance(slot, Result):
            yield from calls_of(other, slot.function, item.alias if item.name else name)
        else:
            yield from _imported_reads(other, item, name)


def calls_of(view: FileContext, function: ast.AST, name: str) -> Iterator[AnySite]:
    """The calls of a function in a module, by the name that it has there."""
    for site in mentions(view, name):
        call = around(site)
        if (
            call is not None
            and isinstance(call.node, ast.Call)
            and call.node.func is site.node
            and isinstance(site.node, (ast.Name, ast.Attribute))
        ):
            callee = callee_of(call, site.node)
            if callee is not None and callee.node is function:
                yield call


def _reads_of_variable(view: FileContext, slot: Variable) -> Iterator[AnySite]:
    scope = scope_of(view, slot.owner)
    for site in mentions(view, slot.name):
        if not isinstance(site.node, ast.Name) or not isinstance(site.node.ctx, ast.Load):
            continue
        owner = site.scope.owner_of(slot.name)
        # A name that only an expression binds (a comprehension's) has no owner.
        if owner is scope if owner is not None else _within(site.scope, scope):
            yield site


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
        for base in all_bases(Callee(view, slot.owner)):
            if base.view is not view and isinstance(base.node, ast.ClassDef):
                yield from _reads_of_member(base.view, Member(base.view.path, base.node, slot.name))
    near = {item.path for item in view.neighbours.importers_with_member(slot.path, slot.name)}
    near |= {
        path
        for path in view.neighbours.imported(slot.path, view.module)
        if view.neighbours.has_member(path, slot.name)
    }
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


def _is_property(function: ast.AST) -> bool:
    return isinstance(function, FUNCTIONS) and any(
        last_name(item) in ("property", "cached_property") for item in function.decorator_list
    )


def _class_of(view: FileContext, function: ast.AST) -> ast.ClassDef | None:
    scope = scope_of(view, function)
    node = scope.parent.node if scope and scope.parent else None
    return node if isinstance(node, ast.ClassDef) else None


def _within(scope: Scope, outer: Scope | None) -> bool:
    current: Scope | None = scope
    while current is not None:
        if current is outer:
            return True
        current = current.parent
    return False
