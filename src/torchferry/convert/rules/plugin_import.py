"""TF101: the line that loads the vendor's plugin, once, where converted code needs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.renaming import renamed
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import FileContext
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.scopes import Scope, import_qualifier
from torchferry.text import Text

_ADDED = Text("adds what the converted lines need: {line}", "为转换后的代码添加：{line}")

ImportNode = ast.Import | ast.ImportFrom


def _finish(context: FileContext, said: list[Proposal]) -> Iterator[Proposal]:
    line = context.target.prelude
    if not line or not any(proposal.edits and proposal.needs_prelude for proposal in said):
        return
    if not context.target.prelude_module and "torch" not in context.module.scopes.root.bindings:
        line = f"import torch; {line}"
    statements = _imports_of_torch(context)
    if not statements and not any(_is_code(context, proposal) for proposal in said):
        return  # a file of settings: strings changed, but nothing here touches torch
    message = _ADDED.format(line=line)
    module_level = [node for scope, node in statements if scope.parent is None]
    if module_level:
        if not _is_loaded(context, context.module.scopes.root):
            yield _beside(context, _anchor(context, module_level), line, message)
        return
    scopes = {id(scope): (scope, node) for scope, node in reversed(statements)}
    for scope, node in scopes.values():
        if not _is_loaded(context, scope) and _touches(context, scope, said):
            yield _beside(context, (node, _before(context, node)), line, message)
    if not scopes and not _is_loaded(context, context.module.scopes.root):
        yield _at_top(context, line, message)


def _is_code(context: FileContext, proposal: Proposal) -> bool:
    """Whether a change is of code rather than of the text of a string."""
    return bool(proposal.edits) and context.module.data[proposal.start : proposal.start + 1] not in (
        b"'",
        b'"',
    )


def _imports_of_torch(context: FileContext) -> list[tuple[Scope, ImportNode]]:
    """The statements that import torch, in the order of the file; those for type checkers alone don't count."""
    found: list[tuple[Scope, ImportNode]] = []
    for unit in context.module.scopes.units:
        node = unit.node
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [import_qualifier(node)]
        else:
            continue
        if any(name.partition(".")[0] == "torch" for name in names):
            found.append((unit.scope, node))
    for_types = _lines_for_type_checkers(context.module.tree)
    return [(scope, node) for scope, node in found if node.lineno not in for_types] or found


def _lines_for_type_checkers(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.If) and _names_type_checking(node.test):
            for statement in node.body:
                lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


def _names_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _anchor(context: FileContext, statements: list[ImportNode]) -> tuple[ImportNode, bool]:
    """The import to put the line beside, and whether it goes before it: what loads it must come first."""
    if context.target.prelude_module:
        return statements[0], _before(context, statements[0])
    # A line that uses torch rather than imports something: after the imports it depends on.
    return _last_of_import_block(context.module.tree, statements[0]), False


def _last_of_import_block(tree: ast.Module, first: ImportNode) -> ImportNode:
    last = first
    for node in tree.body:
        if node.lineno < first.lineno:
            continue
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        last = node
    return last


def _before(context: FileContext, node: ImportNode) -> bool:
    """Whether an import will name a module that exists only once the plugin is loaded."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{import_qualifier(node)}.{alias.name}" for alias in node.names]
    return bool(context.target.prelude_module) and any(renamed(context, name) != name for name in names)


def _beside(context: FileContext, anchor: tuple[ImportNode, bool], line: str, message: Text) -> Proposal:
    node, before = anchor
    module = context.module
    start, end = module.start(node), module.end(node)
    line_start = module.line_starts[node.lineno - 1]
    indent = module.data[line_start:start].decode("utf-8")
    if indent.strip():  # not the first on its line: `try: import torch`, `import os; import torch`
        edit = Edit(start, start, f"{line}; ") if before else Edit(end, end, f"; {line}")
    elif before:
        edit = Edit(line_start, line_start, indent + line + module.newline)
    else:
        edit = _on_next_line(context, node, indent + line)
    return Proposal(Kind.CHANGE, start, end, message, (edit,))


def _on_next_line(context: FileContext, node: ast.stmt, text: str) -> Edit:
    """An insertion after the line on which a statement ends, with whatever else stands on that line."""
    module = context.module
    last = node.end_lineno or node.lineno
    if last < len(module.line_starts):
        position = module.line_starts[last]
        return Edit(position, position, text + module.newline)
    return Edit(len(module.data), len(module.data), module.newline + text)


def _at_top(context: FileContext, line: str, message: Text) -> Proposal:
    """After the docstring and the future imports, or on the first line of code."""
    module = context.module
    last: ast.stmt | None = None
    for position, node in enumerate(module.tree.body):
        is_docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_docstring or is_future):
            break
        last = node
    if last is not None:
        edit = _on_next_line(context, last, line)
        return Proposal(Kind.CHANGE, edit.start, edit.start, message, (edit,))
    first = module.line_starts[module.tree.body[0].lineno - 1]
    return Proposal(Kind.CHANGE, first, first, message, (Edit(first, first, line + module.newline),))


def _is_loaded(context: FileContext, scope: Scope) -> bool:
    """Whether the line is there already, in any spelling."""
    name = context.target.prelude_module
    if not name:
        return context.target.prelude.encode() in context.module.data
    for unit in context.module.scopes.units:
        node = unit.node
        if unit.scope is not scope and unit.scope.parent is not None:
            continue
        if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == name for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == name:
            return True
    return False


def _touches(context: FileContext, scope: Scope, said: list[Proposal]) -> bool:
    start, end = context.module.start(scope.node), context.module.end(scope.node)
    return any(start <= proposal.start < end for proposal in said if proposal.needs_prelude)


RULE = register(
    Rule(
        id="TF101",
        name="plugin-import",
        summary=Text(
            "the import of the vendor's plugin, once, where converted code needs it",
            "在需要的文件中导入一次厂商插件",
        ),
        triggers=(),
        finish=_finish,
    )
)
