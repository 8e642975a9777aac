"""The modules that a training script reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchferry.conversion.program.functions import FUNCTIONS, FunctionNode, own_method
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.source.module import PythonModule
from torchferry.source.scopes import Binding, BindingKind

_MOST_MODULES = 300


class ProgramDefinition(NamedTuple):
    """A function of the program, or the class that a call makes an instance of."""

    file: ProgramModule
    node: FunctionNode | ast.ClassDef


class TrainingProgram:
    """The script and every module of the project that it imports, directly or not."""

    def __init__(
        self, main: str, neighbours: Neighbours, known: Mapping[str, PythonModule] | None = None
    ) -> None:
        self._neighbours = neighbours
        self._known = known or {}
        self.files: dict[str, ProgramModule] = {}
        self._read(main)
        self.main = self.files.get(main)

    def _read(self, main: str) -> None:
        waiting = [main]
        while waiting and len(self.files) < _MOST_MODULES:
            path = waiting.pop()
            module = self._known.get(path) or self._neighbours.module(path)
            if path in self.files or module is None:
                continue
            self.files[path] = ProgramModule(path, module)
            waiting.extend(self._imported(path, module))

    def _imported(self, path: str, module: PythonModule) -> Iterator[str]:
        names = {binding.qualified for _, binding in module.scopes.imports} | module.scopes.modules
        for name in sorted(names):
            found = self._neighbours.module_path(path, name) if name else None
            if found is None and name:
                definition = self._neighbours.find(path, name)
                found = definition.path if definition else None
            if found is not None:
                yield found

    def definition(self, file: ProgramModule, node: ast.expr) -> ProgramDefinition | None:
        """The function or class of the program that a name or attribute chain stands for."""
        surroundings = file.surroundings(node)
        if surroundings is None:
            return None
        if isinstance(node, ast.Name):
            binding = file.module.binding_of(node.id, surroundings.scope, node.lineno)
            if binding is not None and binding.kind is BindingKind.DEFINITION:
                return _callee(file, binding)
        resolved = file.module.resolve(node, surroundings.scope)
        if resolved is None or resolved.binding is None:
            return None
        return self._project_definition(file, resolved.qualified)

    def _project_definition(self, file: ProgramModule, qualified: str) -> ProgramDefinition | None:
        found = self._neighbours.find(file.path, qualified)
        if found is None or found.path not in self.files:
            return None
        other = self.files[found.path]
        node: ast.AST | None = found.binding.node
        if other.module is not found.module:  # the text was changed by an earlier pass
            name = getattr(node, "name", "")
            bindings = other.module.scopes.root.bindings.get(name, ())
            node = bindings[-1].node if bindings else None
        for attribute in found.attributes:
            node = own_method(node, attribute) if isinstance(node, ast.ClassDef) else None
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return ProgramDefinition(other, node)
        return None


def _callee(file: ProgramModule, binding: Binding) -> ProgramDefinition | None:
    if isinstance(binding.node, (*FUNCTIONS, ast.ClassDef)):
        return ProgramDefinition(file, binding.node)
    return None
