"""The imports of a module whose calls were replaced: those that nothing uses any more go, missing ones come."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from torchferry.convert.program.blocks import shares_its_line
from torchferry.convert.rule import Proposal
from torchferry.convert.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.scopes import BindingKind, import_qualifier
from torchferry.text import Text

_REMOVED = Text("nothing uses it any more: its calls were replaced", "不再使用：其调用已被替换")
_LEFT = Text(
    "{name} is still used, so its library is still imported, which runs on CUDA only",
    "{name} 仍被使用，因此仍导入只支持 CUDA 的库",
)
_ADDED = Text("adds what the replaced calls need: {line}", "为替换后的调用添加：{line}")

ImportNode = ast.Import | ast.ImportFrom


def is_importable_beside(site: Site[ast.Call]) -> bool:
    """Whether a module-level import brings the called function, beside which another one can stand."""
    resolved = site.resolve(site.node.func)
    node = resolved.binding.node if resolved and resolved.binding else None
    return isinstance(node, (ast.Import, ast.ImportFrom)) and node in site.module.tree.body


def import_changes(context: FileContext, said: list[Proposal], names: Collection[str]) -> Iterator[Proposal]:
    """What becomes of the imports; `names` are those of CUDA-only libraries that have an equivalent."""
    replaced = [proposal for proposal in said if proposal.edits and proposal.start in context.needed_imports]
    missing = sorted(set().union(*(context.needed_imports[proposal.start] for proposal in replaced)))
    line = "; ".join(f"import {module}" for module in missing)
    written = [edit for proposal in said for edit in proposal.edits]
    for node in _library_imports(context, names):
        unused = [alias for alias in node.names if _is_unused(context, alias, written)]
        is_first = bool(line) and node in context.module.tree.body
        change = _without(context, node, unused, line if is_first else "") if unused else None
        if change is not None:
            yield change
            line = "" if is_first else line
        yield from _left(context, node, names, [] if change is None else unused)
    anchor = _anchor(context, replaced) if line else None
    if anchor is not None:
        yield _beside(context, anchor, line)


def _left(
    context: FileContext, node: ImportNode, names: Collection[str], gone: list[ast.alias]
) -> Iterator[Proposal]:
    """Say of each name that is still imported, and whose equivalent is known, that it is."""
    for alias in node.names:
        if alias not in gone and (
            f"{import_qualifier(node)}.{alias.name}" in names
            if isinstance(node, ast.ImportFrom)
            else has_only_known_uses(context, alias.name, names)
        ):
            yield context.propose(Kind.TODO, alias, _LEFT.format(name=alias.name))


def has_only_known_uses(context: FileContext, module: str, names: Collection[str]) -> bool:
    """Whether `import module` is there for names of these alone."""
    tree = context.module.tree
    imports = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    roots = {
        alias.asname or module.partition(".")[0]: module if alias.asname else module.partition(".")[0]
        for alias in imports
        if alias.name == module
    }
    chains = {id(node): node for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))}
    for node in list(chains.values()):
        if isinstance(node, ast.Attribute):
            chains.pop(id(node.value), None)
    dotted = [_dotted(node) for node in chains.values()]
    used = [
        f"{roots[root]}.{rest}" for root, _, rest in (name.partition(".") for name in dotted) if root in roots
    ]
    return bool(used) and all(name in names for name in used)


def _dotted(node: ast.expr) -> str:
    """The dotted name that an expression is, as it is written; "" if it is none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _library_imports(context: FileContext, names: Collection[str]) -> list[ImportNode]:
    libraries = {name.partition(".")[0] for name in names}
    found = b"|".join(re.escape(library.encode()) for library in sorted(libraries))
    if not re.search(rb"\b(?:import|from)[ \t]+(?:" + found + rb")\b", context.module.data):
        return []
    nodes = list(ast.walk(context.module.tree))
    tried = {id(node) for block in nodes if isinstance(block, ast.Try) for node in block.body}
    return [
        node
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and id(node) not in tried  # one that may fail can stay
        and not getattr(node, "level", 0)
        and _root(node) in libraries
    ]


def _is_unused(context: FileContext, alias: ast.alias, written: list[Edit]) -> bool:
    """Whether the name stands in replaced text, which does not bring it back, and nowhere else."""
    local = alias.asname or alias.name.partition(".")[0]
    brought_back = re.compile(rf"(?<![\w.]){local}\b")
    removing = [edit for edit in written if not brought_back.search(edit.text)]
    if not removing:
        return False
    uses = [
        context.module.start(use)
        for use in ast.walk(context.module.tree)
        if isinstance(use, ast.Name) and use.id == local
    ]
    return bool(uses) and all(any(edit.start <= use < edit.end for edit in removing) for use in uses)


def _without(context: FileContext, node: ImportNode, unused: list[ast.alias], line: str) -> Proposal | None:
    """An import without some of its names, and another one in its place; None where comments would be lost."""
    module = context.module
    start, end = module.start(node), module.end(node)
    kept = [alias for alias in node.names if alias not in unused]
    if kept and "#" in module.segment(node):
        return None
    text = line
    if kept:
        names = ", ".join(f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in kept)
        head = f"from {import_qualifier(node)} import" if isinstance(node, ast.ImportFrom) else "import"
        text = f"{head} {names}" + (f"; {line}" if line else "")
    elif not line and not shares_its_line(module, node) and not _is_alone(module.tree, node):
        start = module.line_starts[node.lineno - 1]
        last = node.end_lineno or node.lineno
        end = module.line_starts[last] if last < len(module.line_starts) else len(module.data)
    elif not line:
        text = "pass"
    return Proposal(Kind.CHANGE, module.start(node), module.end(node), _REMOVED, (Edit(start, end, text),))


def _is_alone(tree: ast.Module, node: ast.stmt) -> bool:
    """Whether a statement is all that its block holds."""
    blocks = (
        block
        for parent in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(parent, name, None), list)
    )
    return any(block == [node] for block in blocks)


def _anchor(context: FileContext, replaced: list[Proposal]) -> ImportNode | None:
    """The import that brought the first replaced function."""
    first = min(proposal.start for proposal in replaced if context.needed_imports[proposal.start])
    imports = [node for node in context.module.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    roots = {"torch", "torchvision"}
    before = [node for node in imports if context.module.start(node) < first and _root(node) in roots]
    return before[-1] if before else None


def _root(node: ImportNode) -> str:
    name = import_qualifier(node) if isinstance(node, ast.ImportFrom) else node.names[0].name
    return name.partition(".")[0]


def _beside(context: FileContext, node: ImportNode, line: str) -> Proposal:
    """On the line of the import, or below it where no comment follows there."""
    module = context.module
    end = module.end(node)
    rest = module.data[end:].splitlines()[:1]
    joint = "; " if rest and rest[0].strip() else module.newline
    return Proposal(
        Kind.CHANGE, module.start(node), end, _ADDED.format(line=line), (Edit(end, end, joint + line),)
    )


# How a dotted name is written in a place, by the names that the module imports.


class Spelling:
    """Writes dotted names for one place, and notes the modules that would have to be imported for it."""

    def __init__(self, site: Site[ast.Call]) -> None:
        self._site = site
        self.missing: set[str] = set()

    def spell(self, dotted: str) -> str:
        """The name by way of the module's name in the call, else of the longest part of it that is imported."""
        root = dotted.partition(".")[0]
        if root == self._site.target.prelude_module:
            return dotted
        own = self._as_called()
        if own is not None and dotted.startswith(own[1] + "."):
            return own[0] + dotted[len(own[1]) :]
        known = [
            (qualified, name)
            for name, qualified in self._imported()
            if qualified.partition(".")[0] == root and (dotted + ".").startswith(qualified + ".")
        ]
        if not known:
            self.missing.add(root)
            return dotted
        qualified, name = max(known, key=lambda item: len(item[0]))
        return name + dotted[len(qualified) :]

    def _as_called(self) -> tuple[str, str] | None:
        """The name by which the user calls the module of the function, and what it stands for."""
        resolved = self._site.resolve(self._site.node.func)
        node: ast.expr = self._site.node.func
        if resolved is None or resolved.root is node:
            return None
        qualified = resolved.qualified
        while isinstance(node, ast.Attribute) and node is not resolved.root:
            qualified = qualified[: -len(node.attr) - 1]
            node = node.value
        return (self._site.module.segment(node), qualified) if isinstance(node, ast.Name) else None

    def _imported(self) -> list[tuple[str, str]]:
        """The module's own imports that mean the same in this place."""
        found = []
        for name, bindings in self._site.module.scopes.root.bindings.items():
            if len({binding.qualified for binding in bindings}) != 1:
                continue
            if bindings[0].kind is not BindingKind.IMPORT or bindings[0].weak:
                continue
            probe = ast.Name(id=name, ctx=ast.Load(), lineno=self._site.node.lineno, col_offset=0)
            resolved = self._site.module.resolve(probe, self._site.scope, self._site.place.shadowed)
            if resolved is not None and resolved.binding in bindings:
                found.append((name, bindings[0].qualified))
        return found
