"""What the passes for mixed precision share: how a module writes torch, and why a step is left to the user."""

from __future__ import annotations

import ast

from torchferry.conversion.program.changes import ModuleChanges
from torchferry.conversion.program.module import PassModule
from torchferry.text import Text

# How a module writes torch, and the imports that it needs in addition.

_ADDED = Text("Import added for mixed precision", "添加混合精度所需的导入")


def torch_name(program: PassModule, changes: ModuleChanges) -> str:
    """The name of torch in every function of a module; adds an import where it has none."""
    name = program.module.imported_as("torch")
    first = first_import(program)
    if not name and first is not None:
        changes.at(first, _ADDED).edits.append(changes.above(first, "import torch"))
    return name or "torch"


def first_import(program: PassModule) -> ast.stmt | None:
    """The first import of the module's own level; what loads the plugin alone is there only once it is converted."""
    found = [
        item
        for item in program.module.tree.body
        if isinstance(item, ast.Import) or (isinstance(item, ast.ImportFrom) and item.module != "__future__")
    ]
    return next(iter(found), None) if any(not loads_plugin(program, item) for item in found) else None


def loads_plugin(program: PassModule, statement: ast.stmt) -> bool:
    """Whether a statement is the one that a conversion adds: `import torch_npu`, or `import torch; DEVICE_TYPE = ...`."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return False
    target, module = program.context.target, program.module
    if not target.prelude_module and target.prelude:
        return module.data.startswith(f"; {target.prelude}".encode(), module.end(statement))
    return [alias.name for alias in statement.names] == [target.prelude_module]


# Why a training step is left to the user.


class UnclearStepError(Exception):
    """A training step that the pass does not understand well enough; then nothing of the module is changed."""

    def __init__(self, node: ast.AST, reason: Text, is_certain: bool = False) -> None:
        super().__init__(reason.en)
        self.node = node
        self.reason = reason
        self.is_certain = is_certain  # it trains, whatever else the function shows
