"""How import statements are written once the names that they bring are renamed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchferry.convert.renaming import Said, find_rename, local_name, new_root, remarks_of, renamed
from torchferry.convert.rule import Proposal, Rename, Rule
from torchferry.convert.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.names import dotted_name
from torchferry.source.scopes import import_qualifier
from torchferry.text import Text

_NOT_A_MODULE = Text(
    "{old} becomes {new}, which can't be imported; write it where it is used",
    "{old} 应改为 {new}，它不能被导入；请在使用处直接书写",
)
_COMMENTED = Text(
    "these names now come from different modules; split the import by hand, it has comments inside",
    "这些名称现在来自不同模块；该导入语句内有注释，请手工拆分",
)
_STAR = Text(
    "star import of {old}: check that the names taken from it exist in {new}",
    "从 {old} 通配导入：请确认所用名称在 {new} 中存在",
)
_NOT_ALL = Text(
    "star import of {old}: import the names that you use from {new}",
    "从 {old} 通配导入：请从 {new} 导入所用的名称",
)
_STILL_THERE = Text(
    "{old} can be imported everywhere; what is used of it goes through {new}",
    "{old} 在任何环境都能导入；其中的接口经由 {new} 使用",
)


def check_import(site: Site[ast.Import]) -> Iterator[Said]:
    """Rewrite `import torch.cuda.amp as amp`."""
    for alias in site.node.names:
        found = find_rename(site.context, alias.name)
        if found is None:
            continue
        rule, rename = found
        yield from remarks_of(site.context, rule, rename, alias)
        if "(" in rename.new:
            yield rule, site.remark(Kind.TODO, _NOT_A_MODULE.format(old=rename.old, new=rename.new), alias)
        elif rename.new and site.target.helper and not alias.asname:
            yield rule, site.remark(Kind.INFO, _STILL_THERE.format(old=alias.name, new=rename.new), alias)
        elif rename.new:
            yield rule, _change_import(site, alias, rename)


def _change_import(site: Site[ast.Import], alias: ast.alias, rename: Rename) -> Proposal:
    start, new = site.module.start(alias), _importable(site.context, rename.new)
    end = start + len(rename.old.encode())
    if site.target.helper:
        end = site.module.end(alias)
        new = f"{new}{site.module.segment(alias)[len(rename.old) :]}"
    if new.startswith("."):
        if len(site.node.names) > 1:
            return site.remark(Kind.TODO, _NOT_A_MODULE.format(old=rename.old, new=rename.new), alias)
        name = new.lstrip(".")
        start, new = site.module.start(site.node), f"from {new[: -len(name)]} import {name}"
    if not alias.asname and new_root(site.context, alias.name) and _still_needed(site, alias, rename):
        new = f"{alias.name.partition('.')[0]}, {new}"
    edit = Edit(start, end, new)
    return site.change(rename.message, edit, node=alias, needs_prelude=rename.needs_prelude)


def _still_needed(site: Site[ast.Import], alias: ast.alias, rename: Rename) -> bool:
    """Whether `import a.b`, which is to name another package, also serves for uses of `a` that stay."""
    root = alias.name.partition(".")[0]
    if root == rename.old or len(site.module.scopes.root.bindings.get(root, ())) > 1:
        return False
    nodes = list(ast.walk(site.module.tree))
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    names = {dotted_name(node) for node in nodes if id(node) not in inner}
    return any(name.partition(".")[0] == root and renamed(site.context, name) == name for name in names)


def check_import_from(site: Site[ast.ImportFrom]) -> Iterator[Said]:
    """Rewrite `from torch.cuda import a, b as c`: by edits where all names stay together, else as several imports."""
    node, context = site.node, site.context
    prefix = import_qualifier(node)
    if node.level:
        return
    moved: list[_Moved] = []
    said: list[Said] = []
    for alias in node.names:
        qualified = prefix if alias.name == "*" else f"{prefix}.{alias.name}"
        found = find_rename(context, qualified)
        if found is None:
            moved.append(_Moved(alias, prefix, alias.name, None))
            continue
        rule, rename = found
        said.extend(remarks_of(context, rule, rename, alias))
        if alias.name == "*" and context.target.helper and rename.new:
            said.append((rule, site.remark(Kind.TODO, _NOT_ALL.format(old=prefix, new=rename.new), alias)))
            continue
        if alias.name == "*" and not rename.new:
            continue
        if alias.name == "*":
            new = rename.new
            moved.append(_Moved(alias, new, "*", found))
            said.append((rule, site.remark(Kind.TODO, _STAR.format(old=prefix, new=new), alias)))
            continue
        after = renamed(context, qualified)
        if not _can_be_imported(after):
            said.append((rule, site.remark(Kind.TODO, _NOT_A_MODULE.format(old=qualified, new=after), alias)))
            after = qualified
        module, _, name = _importable(context, after).rpartition(".")
        if after != qualified and module.endswith("."):  # `..name`: the dots are the module
            module += "."
        moved.append(_Moved(alias, module, name, found if after != qualified else None))
    yield from said
    yield from _write_import_from(site, prefix, moved)


def _importable(context: FileContext, name: str) -> str:
    """A dotted name as this file imports it: the helper of a project may lie in one of its packages."""
    helper = context.target.helper
    if helper is None or name.partition(".")[0] != helper.name:
        return name
    return helper.module(context.path) + name[len(helper.name) :]


def _can_be_imported(name: str) -> bool:
    """Not what a call answers with, nor a method: `from torch.nn.SyncBatchNorm import convert_sync_batchnorm`."""
    parent = name.rpartition(".")[0].rpartition(".")[2]
    return "(" not in name and not parent[:1].isupper()


class _Moved(NamedTuple):
    alias: ast.alias
    module: str
    name: str
    found: tuple[Rule, Rename] | None


def _write_import_from(site: Site[ast.ImportFrom], prefix: str, moved: list[_Moved]) -> Iterator[Said]:
    changed = [item for item in moved if item.found]
    if not changed:
        return
    modules = {item.module for item in moved}
    if len(modules) > 1 or "" in modules:
        if "#" in site.module.segment(site.node):
            yield _first_found(changed)[0], site.remark(Kind.TODO, _COMMENTED)
        else:
            yield _split_import(site, moved, changed)
        return
    module_edits: list[Edit] = []
    new_module = modules.pop()
    if new_module != prefix:
        start = _module_name_start(site)
        module_edits.append(Edit(start, start + len(prefix.encode()), new_module))
    for item in moved:
        edits = list(_alias_edits(site, item))
        if not item.found or not (edits or module_edits):
            continue
        rule, rename = item.found
        message, needs = rename.message, rename.needs_prelude
        yield rule, site.change(message, *module_edits, *edits, node=item.alias, needs_prelude=needs)


def _first_found(changed: list[_Moved]) -> tuple[Rule, Rename]:
    return next(item.found for item in changed if item.found)


def _alias_edits(site: Site[ast.ImportFrom], item: _Moved) -> Iterator[Edit]:
    if item.alias.name == item.name:
        return
    start = site.module.start(item.alias)
    local = local_name(site.context, item.alias, f"{item.module}.{item.name}")
    keep = "" if item.alias.asname or local == item.name else f" as {local}"
    yield Edit(start, start + len(item.alias.name.encode()), item.name + keep)


def _module_name_start(site: Site[ast.ImportFrom]) -> int:
    """Where the module's name stands; between it and the keyword there is only white space or a continuation."""
    start = site.module.start(site.node) + len("from")
    return site.module.data.index((site.node.module or "").encode(), start)


def _split_import(site: Site[ast.ImportFrom], moved: list[_Moved], changed: list[_Moved]) -> Said:
    """One import per module, in the place of the one that named things which now live apart."""
    module = site.module
    by_module: dict[str, list[str]] = {}
    for item in moved:
        local = local_name(site.context, item.alias, f"{item.module}.{item.name}")
        by_module.setdefault(item.module, []).append(
            item.name if local == item.name else f"{item.name} as {local}"
        )
    start, end = module.start(site.node), module.end(site.node)
    line_start = module.line_starts[site.node.lineno - 1]
    indent = module.data[line_start:start].decode("utf-8")
    joint = "; " if indent.strip() else module.newline + indent
    text = joint.join(
        f"from {name} import {', '.join(names)}" if name else f"import {', '.join(names)}"
        for name, names in by_module.items()
    )
    rule, rename = _first_found(changed)
    needs = any(item.found[1].needs_prelude for item in changed if item.found)
    return rule, site.change(rename.message, Edit(start, end, text), needs_prelude=needs)
