"""How renamed dotted names are written: attribute chains, and the names that imports bind.

Rules only say that `torch.cuda.X` becomes `torch.npu.X`. Which tokens that changes depends on how the module
imports things, and is worked out here, once for all rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchferry.conversion.program.blocks import add_imports
from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.module import Resolved
from torchferry.source.names import dotted_name
from torchferry.source.scopes import Scope, import_qualifier
from torchferry.text import Text

Said = tuple[Rule, Proposal]

_NO_ROOT = Message(
    Text("`{old}` needs an import", "`{old}` 需要导入"),
    why=Text(
        "It becomes `{new}`, but the module `{root}` is not imported here under a usable name.",
        "它应改为 `{new}`，但此处没有可用的 `{root}` 导入名。",
    ),
    do=Text("Import `{root}`, then convert again.", "请导入 `{root}`，然后重新转换。"),
)


def find_rename(context: FileContext, qualified: str) -> tuple[Rule, Rename] | None:
    """The first rule that has something to say about a dotted name."""
    for rule in context.renames:
        if rule.is_local and rule.rename is not None:
            rename = rule.rename(qualified, context)
            if rename is not None:
                return rule, rename
    try:
        return context.names[qualified]
    except KeyError:
        found = context.names[qualified] = _ask_rules(context, qualified)
        return found


def _ask_rules(context: FileContext, qualified: str, after: Rule | None = None) -> tuple[Rule, Rename] | None:
    root = qualified.partition(".")[0]
    for rule in context.renames[0 if after is None else context.renames.index(after) + 1 :]:
        if rule.rename is None or rule.is_local or (rule.roots and root not in rule.roots):
            continue
        rename = rule.rename(qualified, context)
        if rename is not None:
            return rule, rename
    return None


def renamed(context: FileContext, qualified: str) -> str:
    """A dotted name as it will be after conversion."""
    found = find_rename(context, qualified)
    if found is None or not found[1].new:
        return qualified
    return found[1].new + qualified[len(found[1].old) :]


def check_attribute(site: Site[ast.Attribute]) -> Iterator[Said]:
    """Rewrite a chain such as torch.cuda.set_device, whatever name its root goes by."""
    parent = site.parent
    if isinstance(parent, ast.Attribute):
        return  # the whole chain is looked at from its last attribute
    resolved = site.resolve(site.node)
    if resolved is None:
        return
    found = find_rename(site.context, resolved.qualified)
    if found is None:
        return
    rule, rename = found
    node = _prefix_node(site.node, resolved.qualified, rename.old)
    root_name = _root_name(resolved, site.node)
    modules = [name for name in site.module.scopes.modules if resolved.qualified.startswith(f"{name}.")]
    if rename.once and any(find_rename(site.context, name) is not None for name in (root_name, *modules)):
        return  # it is said at the import
    reason = rename.stays(site) if rename.stays else None
    if reason is not None:
        yield rule, site.remark(Kind.INFO, reason, node)
        found = _ask_rules(site.context, resolved.qualified, after=rule)
        if found is None or not found[1].new:
            return
        rule, rename = found
        node = _prefix_node(site.node, resolved.qualified, rename.old)
    yield from remarks_of(site.context, rule, rename, node)
    if not rename.new:
        return
    edits = _chain_edits(site, node, resolved.root, root_name, rename)
    if edits is None:
        text = _NO_ROOT.format(old=rename.old, new=rename.new, root=rename.new.partition(".")[0])
        yield rule, site.remark(Kind.TODO, text, node)
    elif edits:
        yield rule, site.change(rename.message, *edits, node=node, needs_prelude=rename.needs_prelude)


def _chain_edits(
    site: Site[ast.Attribute], node: ast.expr, root: ast.expr, root_name: str, rename: Rename
) -> list[Edit] | None:
    """Edits of the tokens that differ in the renamed part of a chain; None if the new name can't be reached from here."""
    context, module, new = site.context, site.module, rename.new
    root_after = renamed(context, root_name)
    edits = list(_root_edits(context, site.scope, root))
    if new == root_after:
        return edits
    if new.startswith(root_after + ".") and isinstance(node, ast.Attribute):
        return edits + _attribute_edits(site, node, root, new[len(root_after) + 1 :].split("."))
    reachable = _spelled_from_here(site, new)
    imports: list[Edit] = []
    if not reachable and rename.imports and site.scope.owner_of(new.partition(".")[0]) is None:
        reachable, imports = new, add_imports(module, rename.imports)
    if not reachable:
        return None
    return [module.replacement(node, reachable), *imports]


def _attribute_edits(
    site: Site[ast.Attribute], node: ast.Attribute, root: ast.expr, names: list[str]
) -> list[Edit]:
    module = site.module
    attributes: list[ast.Attribute] = []
    current: ast.expr = node
    while current is not root and isinstance(current, ast.Attribute):
        attributes.append(current)
        current = current.value
    attributes.reverse()
    if len(attributes) == len(names):
        spans = [module.attribute_span(attribute) for attribute in attributes]
        return [
            Edit(start, end, name)
            for attribute, (start, end), name in zip(attributes, spans, names, strict=True)
            if attribute.attr != name
        ]
    return [Edit(module.end(root), module.end(node), "." + ".".join(names))]


def _spelled_from_here(site: Site[ast.Attribute], qualified: str) -> str:
    """A way to write a dotted name in this place, "" if its first module is not at hand."""
    root, _, rest = qualified.partition(".")
    if root == site.target.prelude_module and root:
        return qualified
    for name in [root, *site.module.scopes.root.bindings]:
        probe = ast.Name(id=name, ctx=ast.Load(), lineno=site.node.lineno, col_offset=0)
        resolved = site.module.resolve(probe, site.scope, site.place.shadowed)
        if resolved is not None and resolved.qualified == root and resolved.binding is not None:
            return f"{name}.{rest}" if rest else name
    if any(new_root(site.context, name) == root for name in site.module.scopes.modules):
        return qualified
    return ""


def new_root(context: FileContext, module: str) -> str:
    """The package that `import a.b` will name instead, "" if it stays with its own."""
    root = renamed(context, module).partition(".")[0]
    return root if root != module.partition(".")[0] else ""


def _root_name(resolved: Resolved, node: ast.expr) -> str:
    """What the root of a chain stands for: the dotted name without the chain's own attributes."""
    qualified = resolved.qualified
    while node is not resolved.root and isinstance(node, ast.Attribute):
        qualified = qualified[: -len(node.attr) - 1]
        node = node.value
    return qualified


def _prefix_node(node: ast.expr, qualified: str, prefix: str) -> ast.expr:
    """The part of a chain that stands for a prefix of its dotted name."""
    extra = qualified.count(".") - prefix.count(".")
    while extra and isinstance(node, ast.Attribute):
        node = node.value
        extra -= 1
    return node


def check_name(site: Site[ast.Name]) -> Iterator[Said]:
    """Rename the uses of an imported module that goes by another name now."""
    if isinstance(site.parent, ast.Attribute):
        return  # part of a chain
    resolved = site.resolve(site.node)
    found = find_rename(site.context, resolved.qualified) if resolved else None
    if found is None or not isinstance(site.node.ctx, ast.Load):
        return
    rule, rename = found
    edits = list(_root_edits(site.context, site.scope, site.node))
    if edits:
        yield rule, site.change(rename.message, *edits)
    elif not rename.new and not rename.once:
        yield from remarks_of(site.context, rule, rename, site.node)


def _root_edits(context: FileContext, scope: Scope, root: ast.expr) -> Iterator[Edit]:
    """The edit of a name that a from-import binds, where the import gives it another one."""
    if not isinstance(root, ast.Name):
        return
    binding = context.module.binding_of(root.id, scope, root.lineno)
    if binding is not None and isinstance(binding.node, ast.Import) and binding.qualified == root.id:
        name = renamed(context, root.id).partition(".")[0]
        if name != root.id:
            yield context.module.replacement(root, name)
    if binding is None or not isinstance(binding.node, ast.ImportFrom):
        return
    for alias in binding.node.names:
        if alias.name == root.id and alias.asname is None:
            local = local_name(context, alias, renamed(context, binding.qualified))
            if local != root.id:
                yield context.module.replacement(root, local)


def local_name(context: FileContext, alias: ast.alias, new: str) -> str:
    """The name that a from-import binds after conversion.

    A module imported under its own name (`from torch import cuda`) is known by its new name; anything else keeps
    the user's name, so that no other line changes. A clash with a name of the user's keeps the old one, too.
    """
    if alias.asname or context.target.helper:
        return alias.asname or alias.name
    last = new.rpartition(".")[2]
    is_module = alias.name in _MODULE_NAMES
    taken = any(last in scope.bindings for scope in context.module.scopes.scopes)
    return last if is_module and not taken else alias.name


_MODULE_NAMES = frozenset({"cuda"})


def remarks_of(context: FileContext, rule: Rule, rename: Rename, node: ast.AST) -> Iterator[Said]:
    if not rename.new:
        yield rule, context.propose(rename.kind, node, rename.message)
    if rename.remark is not None:
        kind, text = rename.remark
        yield rule, context.propose(kind, node, text)


def imported_names(context: FileContext) -> tuple[set[str], set[int]]:
    """Local names that stand for something a rule knows, and the lines that import them."""
    names: set[str] = set()
    lines: set[int] = set()
    for name, binding in context.module.scopes.imports:
        is_alias = binding.qualified in context.tracked and name != binding.qualified
        if is_alias or find_rename(context, binding.qualified):
            lines.add(binding.line)
            if name != "*":
                names.add(name)
    return names, lines


# How import statements are written once the names that they bring are renamed.

_NOT_A_MODULE = Message(
    Text("Import of `{old}`", "导入 `{old}`"),
    why=Text("It becomes `{new}`, which can't be imported.", "它应改为 `{new}`，而后者不能被导入。"),
    do=Text("Write `{new}` where the name is used.", "请在使用处直接书写 `{new}`。"),
)
_COMMENTED = Message(
    Text("Import of names that now come from different modules", "导入的名称现在来自不同模块"),
    why=Text("The import has comments inside and was left unchanged.", "该导入语句内有注释，保持不变。"),
    do=Text("Split the import by hand.", "请手动拆分该导入。"),
)
_STAR = Message(
    Text("Star import of `{old}`", "从 `{old}` 通配导入"),
    why=Text(
        "It was changed to `{new}`, which may not have every name.", "已改为 `{new}`，它可能不含所有名称。"
    ),
    do=Text("Check that the names you use exist in `{new}`.", "请确认所用名称在 `{new}` 中存在。"),
)
_NOT_ALL = Message(
    Text("Star import of `{old}`", "从 `{old}` 通配导入"),
    do=Text("Import the names that you use from `{new}`.", "请从 `{new}` 导入所用的名称。"),
)
_STILL_THERE = Message(
    Text("Import of `{old}`", "导入 `{old}`"),
    why=Text(
        "It can be imported everywhere, so it stays; what is used of it goes through `{new}`.",
        "在任何环境都能导入，因此保留；其中的接口经由 `{new}` 使用。",
    ),
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
        if alias.name == "*":
            if rename.new:
                message = (_NOT_ALL if context.target.helper else _STAR).format(old=prefix, new=rename.new)
                said.append((rule, site.remark(Kind.TODO, message, alias)))
            if rename.new and not context.target.helper:
                moved.append(_Moved(alias, rename.new, "*", found))
            continue
        after = renamed(context, qualified)
        # Not what a call answers with, nor a method: `from torch.nn.SyncBatchNorm import convert_sync_batchnorm`.
        if "(" in after or after.rpartition(".")[0].rpartition(".")[2][:1].isupper():
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
        # Between the keyword and the name there is only white space or a continuation.
        start = site.module.data.index(prefix.encode(), site.module.start(site.node) + len("from"))
        module_edits.append(Edit(start, start + len(prefix.encode()), new_module))
    for item in moved:
        edits = list(module_edits)
        if item.alias.name != item.name:
            start = site.module.start(item.alias)
            local = local_name(site.context, item.alias, f"{item.module}.{item.name}")
            keep = "" if item.alias.asname or local == item.name else f" as {local}"
            edits.append(Edit(start, start + len(item.alias.name.encode()), item.name + keep))
        if item.found and edits:
            rule, rename = item.found
            needs = rename.needs_prelude
            yield rule, site.change(rename.message, *edits, node=item.alias, needs_prelude=needs)


def _first_found(changed: list[_Moved]) -> tuple[Rule, Rename]:
    return next(item.found for item in changed if item.found)


def _split_import(site: Site[ast.ImportFrom], moved: list[_Moved], changed: list[_Moved]) -> Said:
    """One import per module, in the place of the one that named things which now live apart."""
    module = site.module
    by_module: dict[str, list[str]] = {}
    for item in moved:
        local = local_name(site.context, item.alias, f"{item.module}.{item.name}")
        name = item.name if local == item.name else f"{item.name} as {local}"
        by_module.setdefault(item.module, []).append(name)
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
