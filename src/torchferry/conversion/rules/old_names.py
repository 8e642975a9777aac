"""TF123: names that the vendor's own plugin had in its early days become today's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.conversion.target import Target
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text
from torchferry.vendors.calls import OldName, load_old_names

_OLD = Message(Text("Old name replaced", "旧名称已替换"), why=Text("{why}", "{why}"))


def _names(target: Target) -> tuple[OldName, ...]:
    return () if target.is_portable else load_old_names(target.vendor.folder)


@cache
def _by_name(vendor_folder: str) -> dict[str, OldName]:
    return {old.name: old for old in load_old_names(vendor_folder) if old.name and not old.argument}


def _rename(qualified: str, context: FileContext) -> Rename | None:
    old = _by_name(context.target.vendor.folder).get(qualified)
    if old is None or context.target.is_portable:
        return None
    message = _OLD.format(why=old.why)
    if not old.new:
        return Rename(qualified, "", Kind.TODO, message)
    module = old.new.rpartition(".")[0]
    is_of_plugin = module.partition(".")[0] == context.target.prelude_module
    imports = (f"import {module}",)
    return Rename(qualified, old.new, Kind.CHANGE, message, needs_prelude=is_of_plugin, imports=imports)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    call = site.node
    for old in _names(site.target):
        if old.method and isinstance(call.func, ast.Attribute) and call.func.attr == old.method:
            is_function = isinstance(call.func.value, ast.Name) and old.new.startswith(
                f"{call.func.value.id}."
            )
            if not site.qualified(call.func) and not is_function:
                yield site.change(_OLD.format(why=old.why), *_as_function(site, call.func, old.new))
        elif old.argument and site.name == old.name:
            for item in call.keywords:
                if item.arg == old.argument:
                    # The new argument; with a condition where the old one was none or not always on.
                    value = item.value
                    name, _, on = old.write.partition("=")
                    if not (isinstance(value, ast.Constant) and value.value is True):
                        on = f"{on} if {site.module.segment(value)} else None"
                    edit = site.module.replacement(item, f"{name}={on}")
                    yield site.change(_OLD.format(why=old.why), edit, node=item, needs_prelude=True)


def _as_function(site: Site[ast.Call], func: ast.Attribute, new: str) -> list[Edit]:
    """x.cast(0) as module.cast(x, 0)"""
    module, call = site.module, site.node
    start = module.start(call)
    dot = module.data.rindex(b".", start, module.attribute_span(func)[0])
    opening = module.data.index(b"(", module.end(func))
    joint = ", " if call.args or call.keywords else ""
    return [Edit(start, start, f"{new}("), Edit(dot, opening + 1, joint)]


def _prepare(target: Target) -> Rule:
    names = _names(target)
    words = {
        word for old in names for word in (old.method, old.argument or old.name.rpartition(".")[2]) if word
    }
    dotted = frozenset(old.name for old in names if old.name)
    packages = {old.name.partition(".")[0] for old in names if old.name}
    return replace(
        RULE, triggers=tuple(sorted(words)), tracks=dotted, roots=tuple(sorted(packages)) or ("-",)
    )


RULE = Rule(
    id="TF123",
    name="old-names",
    summary=Text("Replaces old names of the vendor's own plugin", "替换厂商插件的旧名称"),
    triggers=(),
    nodes=(ast.Call,),
    check=_check,
    rename=_rename,
    is_local=True,  # so that it is asked before apex's
    prepare=_prepare,
)
