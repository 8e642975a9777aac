"""What a name, an attribute or a partial() stands for: the one way in which all who ask about the program look it up."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeGuard, TypeVar

from torchferry.conversion.program.functions import FUNCTIONS, FunctionNode, is_self, own_method
from torchferry.conversion.program.neighbours import Definition, Neighbours
from torchferry.conversion.site import enclosing_class
from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, dotted_name, last_name
from torchferry.source.scopes import Binding, BindingKind, ModuleScopes, Scope, qualified_in

_DEPTH = 4  # aliases and base classes that are followed
_NONE: frozenset[str] = frozenset()


class ModuleView(Protocol):
    """A module of the project, however the one who asks looks at it."""

    @property
    def path(self) -> str: ...

    @property
    def module(self) -> PythonModule: ...


View = TypeVar("View", bound=ModuleView)


@dataclass(frozen=True)
class ProjectDefinition(Generic[View]):
    """A function or a class of the project, and how many of its first parameters a call of it does not write."""

    file: View
    node: FunctionNode | ast.ClassDef
    given: int = 0


@dataclass(frozen=True)
class ImportedName(Generic[View]):
    """The name of another module of the project that an imported one stands for."""

    file: View
    definition: Definition


ObjectMethod = Callable[[View, ast.Attribute, Scope, frozenset[str], int], "ProjectDefinition[View] | None"]


class Lookup(Generic[View]):
    """Looks definitions up in the module where they are asked for, and through its imports in the others.

    `beside` opens another module; `object_method` answers for the methods of objects, if the caller follows values.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        beside: Callable[[str], View | None],
        object_method: ObjectMethod[View] | None = None,
    ) -> None:
        self._neighbours = neighbours
        self._beside = beside
        self._object_method = object_method

    def definition(
        self, file: View, node: ast.expr, scope: Scope, shadowed: frozenset[str] = _NONE, depth: int = _DEPTH
    ) -> ProjectDefinition[View] | None:
        """The function or class that an expression stands for, read in a scope where some names are bound anew."""
        if not depth:
            return None
        if isinstance(node, ast.Name):
            return None if node.id in shadowed else self._by_name(file, node, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._by_attribute(file, node, scope, shadowed, depth)
        if not is_partial(node):
            return None
        found = self.definition(file, node.args[0], scope, shadowed, depth - 1)
        return replace(found, given=found.given + len(node.args) - 1) if found else None

    def _by_name(
        self, file: View, name: ast.Name, scope: Scope, depth: int
    ) -> ProjectDefinition[View] | None:
        binding = file.module.binding_of(name.id, scope, name.lineno)
        if binding is None:
            stars = (self.imported(file, qualified_in(star, name.id)) for star in file.module.scopes.stars)
            return first_of(stars)
        return self._bound(file, binding, scope.owner_of(name.id) or scope, depth)

    def _bound(
        self, file: View, binding: Binding, scope: Scope, depth: int
    ) -> ProjectDefinition[View] | None:
        if binding.kind is BindingKind.IMPORT:
            return self.imported(file, binding.qualified, depth)
        if isinstance(binding.node, (*FUNCTIONS, ast.ClassDef)):
            return ProjectDefinition(file, binding.node)
        value = binding.value
        is_reference = isinstance(value, (ast.Name, ast.Attribute)) or is_partial(value)
        return self.definition(file, value, scope, depth=depth - 1) if value and is_reference else None

    def _by_attribute(
        self, file: View, node: ast.Attribute, scope: Scope, shadowed: frozenset[str], depth: int
    ) -> ProjectDefinition[View] | None:
        around = class_around(file, scope)
        if around is not None and called_name(node.value) == "super":
            return first_of(self.method(base, node.attr) for base in self.bases(around))
        if around is not None and is_self(node.value):
            return self.method(around, node.attr)
        resolved = file.module.resolve(node, scope, shadowed)
        imported = self.imported(file, resolved.qualified, depth) if resolved and resolved.binding else None
        if imported is not None:
            return imported
        owner = self.definition(file, node.value, scope, shadowed, depth - 1)
        if owner is not None and isinstance(owner.node, ast.ClassDef):
            return self._through_class(owner, node.attr)
        return self._object_method(file, node, scope, shadowed, depth - 1) if self._object_method else None

    def imported(self, file: View, qualified: str, depth: int = _DEPTH) -> ProjectDefinition[View] | None:
        """A function, class or method of the project by its dotted name, as a module imports it."""
        found = self._neighbours.find(file.path, qualified)
        other = self._beside(found.path) if found else None
        binding = found.binding_in(other.module) if found and other else None
        if found is None or other is None or binding is None:
            return None
        defined = self._bound(other, binding, other.module.scopes.root, depth)
        for name in found.attributes:
            defined = self._through_class(defined, name) if defined else None
        return defined

    def imported_name(
        self, file: View, node: ast.expr, scope: Scope, shadowed: frozenset[str] = _NONE
    ) -> ImportedName[View] | None:
        """The name behind `config.WHERE`, `WHERE` of `from config import WHERE`, `Config.where` of such a class."""
        found = (
            self._neighbours.find(file.path, name) for name in _import_names(file, node, scope, shadowed)
        )
        definition = next(filter(None, found), None)
        other = self._beside(definition.path) if definition else None
        return ImportedName(other, definition) if definition and other else None

    def method(
        self, owner: ProjectDefinition[View], name: str, depth: int = _DEPTH
    ) -> ProjectDefinition[View] | None:
        """A method of a class or of its bases, called on an instance."""
        if not isinstance(owner.node, ast.ClassDef) or not depth:
            return None
        own = own_method(owner.node, name)
        if own is not None:
            return ProjectDefinition(owner.file, own, given_instance(own))
        return first_of(self.method(base, name, depth - 1) for base in self.bases(owner))

    def _through_class(self, owner: ProjectDefinition[View], name: str) -> ProjectDefinition[View] | None:
        """A method called through its class: the instance is written."""
        found = self.method(owner, name)
        if found is None or {"staticmethod", "classmethod"} & decorators(found.node):
            return found
        return replace(found, given=found.given - 1)

    def runs(self, callee: ProjectDefinition[View]) -> ProjectDefinition[View] | None:
        """The function that a call runs: of a class its __init__, or that of a base; None if it has none."""
        if not isinstance(callee.node, ast.ClassDef):
            return callee
        creator = self.method(callee, "__init__")
        return replace(creator, given=creator.given + callee.given) if creator else None

    def bases(self, owner: ProjectDefinition[View]) -> Iterator[ProjectDefinition[View]]:
        """The classes of the project that a class names as its bases."""
        if not isinstance(owner.node, ast.ClassDef):
            return
        scope = _scope_around(owner.file.module.scopes, owner.node)
        for base in owner.node.bases:
            found = self.definition(owner.file, base, scope, depth=2)
            if found is not None and isinstance(found.node, ast.ClassDef) and found.node is not owner.node:
                yield found

    def all_bases(
        self, owner: ProjectDefinition[View], depth: int = _DEPTH
    ) -> Iterator[ProjectDefinition[View]]:
        """The classes of the project that a class is made of, without itself."""
        for base in self.bases(owner) if depth else ():
            yield base
            yield from self.all_bases(base, depth - 1)


def _scope_around(scopes: ModuleScopes, node: ast.ClassDef) -> Scope:
    """The scope in which a class is defined."""
    if any(binding.node is node for binding in scopes.root.bindings.get(node.name, ())):
        return scopes.root
    own = next((scope for scope in scopes.scopes if scope.node is node), None)
    return own.parent if own and own.parent else scopes.root


def _import_names(file: ModuleView, node: ast.expr, scope: Scope, shadowed: frozenset[str]) -> list[str]:
    """The dotted names under which an expression may be imported: one, or one for each star import."""
    name = dotted_name(node)
    root = name.partition(".")[0]
    if root and root not in shadowed and scope.owner_of(root) is None:
        return [qualified_in(star, name) for star in file.module.scopes.stars]
    resolved = file.module.resolve(node, scope, shadowed)
    binding = resolved.binding if resolved else None
    return [resolved.qualified] if resolved and binding and binding.kind is BindingKind.IMPORT else []


def class_around(file: View, scope: Scope) -> ProjectDefinition[View] | None:
    """The class around a scope: that of a method, or of a function in one."""
    found = enclosing_class(scope)
    node = found.node if found else None
    return ProjectDefinition(file, node) if isinstance(node, ast.ClassDef) else None


def is_partial(node: ast.AST | None) -> TypeGuard[ast.Call]:
    """Whether an expression is `partial(function, ...)`."""
    return isinstance(node, ast.Call) and called_name(node) == "partial" and bool(node.args)


def given_instance(method: FunctionNode) -> int:
    """How many parameters a method gets of the object that it is called on."""
    return 0 if "staticmethod" in decorators(method) else 1


def decorators(node: ast.AST) -> set[str]:
    """The last names of a function's decorators."""
    return {last_name(item) for item in node.decorator_list} if isinstance(node, FUNCTIONS) else set()


def first_of(
    found: Iterator[ProjectDefinition[View] | None],
) -> ProjectDefinition[View] | None:
    """The first that is known."""
    return next((item for item in found if item is not None), None)
