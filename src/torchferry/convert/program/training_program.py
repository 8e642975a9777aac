"""The modules that a training script reaches, and where the nodes of their trees stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from torchferry.convert.program.neighbours import Neighbours
from torchferry.source.module import PythonModule
from torchferry.source.scopes import Binding, BindingKind, Scope

Function = ast.FunctionDef | ast.AsyncFunctionDef
ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_MODULES = 300


class Surroundings(NamedTuple):
    """The surroundings of a node."""

    scope: Scope
    statement: ast.stmt
    parent: ast.AST | None


class Block(NamedTuple):
    """A list of statements, and the statement that it belongs to."""

    owner: ast.AST
    statements: list[ast.stmt]


class ProgramFile:
    """One module of the program."""

    def __init__(self, path: str, module: PythonModule) -> None:
        self.path = path
        self.module = module

    @cached_property
    def _standings(self) -> dict[int, Surroundings]:
        found: dict[int, Surroundings] = {}
        for unit in self.module.scopes.units:
            waiting: list[tuple[ast.AST, ast.AST | None]] = [(unit.node, None)]
            while waiting:
                node, parent = waiting.pop()
                found[id(node)] = Surroundings(unit.scope, unit.statement, parent)
                waiting.extend((child, node) for child in ast.iter_child_nodes(node))
        return found

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call, in the order of the text."""
        nodes = (node for unit in self.module.scopes.units for node in ast.walk(unit.node))
        found = {id(node): node for node in nodes if isinstance(node, ast.Call)}
        return sorted(found.values(), key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def blocks(self) -> dict[int, Block]:
        """By the id of a statement: the block in which it stands."""
        found: dict[int, Block] = {}
        waiting: list[ast.AST] = [self.module.tree]
        while waiting:
            owner = waiting.pop()
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(owner, name, None)
                if isinstance(statements, list):
                    for statement in statements:
                        found[id(statement)] = Block(owner, statements)
                        waiting.append(statement)
            for branch in (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ())):
                found[id(branch)] = Block(owner, [])
                waiting.append(branch)
        return found

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Every statement, in the order of the text."""
        found = [node for node in ast.walk(self.module.tree) if isinstance(node, ast.stmt)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def scopes(self) -> dict[int, Scope]:
        """By the id of a function, a class or the module: its scope."""
        return {id(scope.node): scope for scope in self.module.scopes.scopes}

    def standing(self, node: ast.AST) -> Surroundings | None:
        return self._standings.get(id(node))

    def parent(self, node: ast.AST) -> ast.AST | None:
        standing = self._standings.get(id(node))
        return standing.parent if standing else None

    def qualified(self, node: ast.expr) -> str:
        """The dotted name of an expression, through imports and aliases; "" if it has none."""
        standing = self._standings.get(id(node))
        resolved = self.module.resolve(node, standing.scope) if standing else None
        return resolved.qualified if resolved else ""

    def owners(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """The statements around one, from the nearest to the module."""
        block = self.blocks.get(id(statement))
        while block is not None:
            yield block.owner
            block = self.blocks.get(id(block.owner))

    def scope_of_statement(self, statement: ast.stmt) -> Scope:
        """The scope in which a statement runs."""
        for owner in self.owners(statement):
            if id(owner) in self.scopes:
                return self.scopes[id(owner)]
        return self.module.scopes.root


class ProgramDefinition(NamedTuple):
    """A function of the program, or the class that a call makes an instance of."""

    file: ProgramFile
    node: Function | ast.ClassDef


class TrainingProgram:
    """The script and every module of the project that it imports, directly or not."""

    def __init__(
        self, main: str, neighbours: Neighbours, known: Mapping[str, PythonModule] | None = None
    ) -> None:
        self._neighbours = neighbours
        self._known = known or {}
        self.files: dict[str, ProgramFile] = {}
        self._read(main)
        self.main = self.files.get(main)

    def _read(self, main: str) -> None:
        waiting = [main]
        while waiting and len(self.files) < _MOST_MODULES:
            path = waiting.pop()
            module = self._known.get(path) or self._neighbours.module(path)
            if path in self.files or module is None:
                continue
            self.files[path] = ProgramFile(path, module)
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

    def definition(self, file: ProgramFile, node: ast.expr) -> ProgramDefinition | None:
        """The function or class of the program that a name or attribute chain stands for."""
        standing = file.standing(node)
        if standing is None:
            return None
        if isinstance(node, ast.Name):
            binding = file.module.binding_of(node.id, standing.scope, node.lineno)
            if binding is not None and binding.kind is BindingKind.DEFINITION:
                return _callee(file, binding)
        resolved = file.module.resolve(node, standing.scope)
        if resolved is None or resolved.binding is None:
            return None
        return self._project_definition(file, resolved.qualified)

    def _project_definition(self, file: ProgramFile, qualified: str) -> ProgramDefinition | None:
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
            node = method_of(node, attribute) if isinstance(node, ast.ClassDef) else None
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return ProgramDefinition(other, node)
        return None


def _callee(file: ProgramFile, binding: Binding) -> ProgramDefinition | None:
    if isinstance(binding.node, (*FUNCTIONS, ast.ClassDef)):
        return ProgramDefinition(file, binding.node)
    return None


def method_of(node: ast.ClassDef, name: str) -> Function | None:
    """A method that a class itself defines."""
    return next((item for item in node.body if isinstance(item, FUNCTIONS) and item.name == name), None)


def assigned_to(node: ast.AST) -> list[ast.expr]:
    """What an assignment gives its value, with a type or without; nothing for any other statement."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) and node.value is not None else []


def targets(node: ast.AST) -> list[ast.Name | ast.Attribute]:
    """The names and attributes that an assignment binds."""
    nodes = [child for target in assigned_to(node) for child in ast.walk(target)]
    names = [child for child in nodes if isinstance(child, (ast.Name, ast.Attribute))]
    return [child for child in names if isinstance(child.ctx, ast.Store)]


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those of functions and classes that are defined in it."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(child))
