"""TF101: the line that loads the vendor's plugin, once, where converted code needs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.program.blocks import (
    first_line,
    indent_of,
    is_docstring,
    is_main_guard,
    on_next_line,
    shares_its_line,
)
from torchferry.conversion.python_config import is_python_config
from torchferry.conversion.renaming import renamed
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules.is_cuda import is_option
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule
from torchferry.source.names import dotted_name, last_name
from torchferry.source.scopes import Scope, import_qualifier, imported_modules
from torchferry.source.walk import nodes_on_lines
from torchferry.text import Text

_ADDED = Text("Line added for the converted code: `{line}`", "为转换后的代码添加：`{line}`")

_ADDED_FOR_SCRIPT = Text(
    "Line added so that PyTorch knows the device that the script is given: `{line}`",
    "设备由外部指定，添加一行使 PyTorch 认识该设备：`{line}`",
)
_MOVES = re.compile(rb"torch\.device\(|\.to\(")

ImportNode = ast.Import | ast.ImportFrom


def _finish(context: FileContext, said: list[Proposal]) -> Iterator[Proposal]:
    line = context.target.prelude_of(context.path)
    if not line:
        return
    if not any(_is_needed(context, proposal) for proposal in said):
        if not context.target.prelude_name and _is_told_its_device(context):
            yield from _load_plugin(context, said, line, _ADDED_FOR_SCRIPT.format(line=line))
        return
    if is_python_config(context.module):
        return  # the program that reads it has loaded the plugin, and an import could change how it is read
    if not context.target.prelude_name:
        yield from _load_plugin(context, said, line, _ADDED.format(line=line))
    elif not _is_loaded(context, context.module.scopes.root):
        first = min(proposal.start for proposal in said if _is_needed(context, proposal))
        yield _define_name(context, line, first)


def _may_be_told_its_device(data: bytes) -> bool:
    return b"__main__" in data and _MOVES.search(data) is not None


def _is_told_its_device(context: FileContext) -> bool:
    """Whether a module is a script that takes its device from a configuration or the command line."""
    module = context.module
    if not _may_be_told_its_device(module.data) or not any(map(is_main_guard, module.tree.body)):
        return False
    nodes = nodes_on_lines(module, sorted(module.lines_with_names(("device", "to"))))
    return any(isinstance(node, ast.Call) and _takes_device(node, module) for node in nodes)


def _takes_device(call: ast.Call, module: PythonModule) -> bool:
    """torch.device(args.device), model.to(config.device)"""
    given = call.args[0] if len(call.args) == 1 else None
    if isinstance(given, ast.Name):
        values = [
            item.value for item in module.scopes.root.bindings.get(given.id, ()) if item.value is not None
        ]
        given = values[0] if len(values) == 1 else given
    if dotted_name(call.func) == "torch.device":
        return isinstance(given, (ast.Name, ast.Attribute, ast.Subscript))
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
    return is_move and isinstance(given, ast.Attribute) and given.attr == "device" and is_option(given.value)


def _is_needed(context: FileContext, proposal: Proposal) -> bool:
    name = context.target.prelude_name
    if name:
        return any(_uses(context, name, edit) for edit in proposal.edits)
    return bool(proposal.edits) and proposal.needs_prelude


def _uses(context: FileContext, name: str, edit: Edit) -> bool:
    """Whether new code uses a name, rather than only import it or something of it."""
    behind = context.module.data[edit.end : edit.end + len(" import ")].decode("utf-8", "replace")
    return bool(re.search(rf"(?<![\w.]){name}\b(?!\s*(?:as|import)\b)", edit.text + behind))


def _define_name(context: FileContext, line: str, first_use: int) -> Proposal:
    """The line that code without a vendor's name needs: it must stand before everything that uses it."""
    message = _ADDED.format(line=line)
    imports = [node for scope, node in _imports_of_torch(context) if scope.parent is None]
    if not imports and context.target.prelude_module:
        imports = _imports_at_top(context.module.tree)
    is_late = bool(imports) and context.module.start(imports[0]) > first_use
    if is_late:
        imports = []
    is_bound = "torch" in context.module.scopes.root.bindings and not is_late
    if not context.target.prelude_module and not is_bound:
        line = f"import torch; {line}"
    if not imports:
        return _at_top(context, line, message)
    return _beside(context, _last_of_import_block(context.module.tree, imports[0]), False, line, message)


def _imports_at_top(tree: ast.Module) -> list[ImportNode]:
    found: list[ImportNode] = []
    for position, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not _is_of_future(node):
                found.append(node)
        elif position or not is_docstring(node):
            break
    return found


def _load_plugin(context: FileContext, said: list[Proposal], line: str, message: Text) -> Iterator[Proposal]:
    statements = _imports_of_torch(context)
    is_script = any(map(is_main_guard, context.module.tree.body))
    changed = [proposal.start for proposal in said if proposal.edits]
    if (
        not statements
        and not is_script
        and all(context.module.data.startswith((b"'", b'"'), at) for at in changed)
    ):
        return  # a file of settings: strings changed, but nothing here touches torch
    module_level = [node for scope, node in statements if scope.parent is None]
    if module_level:
        anchor = module_level[0]
        if not _is_loaded(context, context.module.scopes.root, anchor.col_offset):
            yield _beside(context, anchor, _before(context, anchor), line, message)
        return
    scopes = {id(scope): (scope, node) for scope, node in reversed(statements)}
    for scope, node in scopes.values():
        start, end = context.module.start(scope.node), context.module.end(scope.node)
        is_touched = any(start <= item.start < end for item in said if item.needs_prelude)
        if is_touched and not _is_loaded(context, scope, node.col_offset):
            yield _beside(context, node, _before(context, node), line, message)
    if not scopes and not _is_loaded(context, context.module.scopes.root):
        yield _at_top(context, line, message)


def _imports_of_torch(context: FileContext) -> list[tuple[Scope, ImportNode]]:
    """The statements that import torch, in the order of the file; those for type checkers alone don't count."""
    found: list[tuple[Scope, ImportNode]] = []
    for unit in context.module.scopes.units:
        node = unit.node
        is_torch = any(name.partition(".")[0] == "torch" for name in imported_modules(node))
        if is_torch and isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((unit.scope, node))
    found.sort(key=lambda item: item[1].lineno)
    for_types = {
        line
        for node in context.module.tree.body
        if isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for line in range(statement.lineno, (statement.end_lineno or 0) + 1)
    }
    return [(scope, node) for scope, node in found if node.lineno not in for_types]


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
    return any(renamed(context, name) != name for name in names)


def _beside(context: FileContext, node: ImportNode, before: bool, line: str, message: Text) -> Proposal:
    module = context.module
    start = module.start(node)
    indent = indent_of(module, node)
    if before and indent.strip():
        edit = Edit(start, start, f"{line}; ")
    elif before:
        line_start = module.line_starts[node.lineno - 1]
        edit = Edit(line_start, line_start, indent + line + module.newline)
    elif shares_its_line(module, node):  # `try: import torch`, `import torch; model.cuda()`
        edit = module.insertion_after(node, f"; {line}")
    else:
        edit = on_next_line(module, node, indent + line)
    return context.propose(Kind.CHANGE, node, message, edit)


def _at_top(context: FileContext, line: str, message: Text) -> Proposal:
    """After the docstring and the future imports, or on the first line of code."""
    module = context.module
    last: ast.stmt | None = None
    for position, node in enumerate(module.tree.body):
        if not (_is_of_future(node) or (position == 0 and is_docstring(node))):
            break
        last = node
    if last is not None:
        edit = on_next_line(module, last, line)
        return Proposal(Kind.CHANGE, edit.start, edit.start, message, (edit,))
    first = module.line_starts[first_line(module.tree.body[0]) - 1]
    return Proposal(Kind.CHANGE, first, first, message, (Edit(first, first, line + module.newline),))


def _is_of_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_loaded(context: FileContext, scope: Scope, depth: int = 0) -> bool:
    """Whether the line is there already, in any spelling, and not under a condition of its own."""
    name = context.target.prelude_module
    if not name:
        return context.target.prelude.encode() in context.module.data
    tried = [node for block in context.module.tree.body if isinstance(block, ast.Try) for node in block.body]
    for unit in context.module.scopes.units:
        node = unit.node
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if node.col_offset > depth and node not in tried:
            continue
        if unit.scope is not scope and unit.scope.parent is not None:
            continue
        if _imports(node, name, must_bind=bool(context.target.prelude_name)):
            return True
    return False


def _imports(node: ImportNode, name: str, must_bind: bool) -> bool:
    """Whether a statement imports a module or something of it; `must_bind`: under the module's own name."""
    if must_bind:
        return any((alias.asname or alias.name) == name for alias in node.names)
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == name for alias in node.names)
    return (node.module or "").partition(".")[0] == name


RULE = Rule(
    id="TF101",
    name="plugin-import",
    summary=Text(
        "Imports the vendor's plugin once where converted code needs it",
        "在转换后的代码需要时导入一次厂商插件",
    ),
    triggers=("torch.device(", ".to("),
    worth=_may_be_told_its_device,
    finish=_finish,
)
