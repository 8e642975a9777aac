"""How a module writes torch, and the imports that it needs in addition."""

from __future__ import annotations

import ast

from torchferry.convert.amp.changes import Changes
from torchferry.convert.program import Program
from torchferry.source.scopes import BindingKind
from torchferry.text import Text

_ADDED = Text("the import that mixed precision needs", "混合精度所需的导入")


def torch_name(program: Program, changes: Changes) -> str:
    """The name of torch in every function of a module; adds an import where it has none."""
    for name, bindings in program.module.scopes.root.bindings.items():
        if any(binding.kind is BindingKind.IMPORT and binding.qualified == "torch" for binding in bindings):
            return name
    add_import(program, changes, "import torch")
    return "torch"


def add_import(program: Program, changes: Changes, line: str) -> None:
    """Add an import before the first one that is not from the future."""
    first = first_import(program)
    if first is not None:
        changes.at(first, _ADDED).edits.append(changes.above(first, line))


def first_import(program: Program) -> ast.stmt | None:
    """The first import of the module's own level; what loads the plugin alone is there only once it is converted."""
    found = [
        item
        for item in program.module.tree.body
        if isinstance(item, ast.Import) or (isinstance(item, ast.ImportFrom) and item.module != "__future__")
    ]
    return next(iter(found), None) if any(not loads_plugin(program, item) for item in found) else None


def loads_plugin(program: Program, statement: ast.stmt) -> bool:
    """Whether a statement is the one that a conversion adds: `import torch_npu`, or `import torch; DEVICE_TYPE = ...`."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return False
    target, module = program.context.target, program.module
    if not target.prelude_module and target.prelude:
        return module.data.startswith(f"; {target.prelude}".encode(), module.end(statement))
    return [alias.name for alias in statement.names] == [target.prelude_module]
