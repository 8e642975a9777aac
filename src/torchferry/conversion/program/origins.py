"""Where values of a program come from: traced back through names, attributes, containers, calls and returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from torchferry.conversion.program.functions import (
    ASSIGNMENTS,
    FUNCTIONS,
    FunctionNode,
    argument_for,
    assigned_to,
    own_method,
    returned,
    yielding_loops,
)
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.training_program import ProgramDefinition, TrainingProgram
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import Binding, BindingKind

# Methods that answer with the object itself, or with a form of it that stands for it.
_SAME_OBJECT = frozenset(
    {"to", "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "apply", "requires_grad_"}
)
# Functions that answer with a form of their argument.
_SAME_ARGUMENT = frozenset(
    {"enumerate", "tqdm", "trange", "iter", "next", "cycle", "islice", "zip", "list", "tuple", "reversed"}
)
_WRAPPERS = frozenset(
    {"DataParallel", "DistributedDataParallel", "DDP", "compile", "convert_sync_batchnorm", "script"}
)
_DEPTH = 14
Key = str | int
_Seen = tuple[int, Key | None, int]  # the ids of a node and of the call through which it was come to
ANY = "*"  # the key of something in a container that is not named: `loaders[phase]`


class Origin(NamedTuple):
    """An expression that makes a value: a constant, or a call that is not one of the program's functions."""

    file: ProgramModule
    node: ast.expr


class CallSite(NamedTuple):
    """A call of a function of the program."""

    file: ProgramModule
    call: ast.Call


class _Given(NamedTuple):
    """The value that an attribute is given."""

    file: ProgramModule
    value: ast.expr
    place: int | None  # which item of the value: `self.a, self.b = value`
    owner: ast.ClassDef | None  # the class in which that happens


class OriginFlow:
    """Answers where the value of an expression was made."""

    def __init__(self, program: TrainingProgram) -> None:
        self.program = program
        self._sites: dict[int, list[CallSite]] | None = None
        self._methods: dict[int, ProgramDefinition | None] = {}
        self._memo: dict[tuple[int, Key | None], dict[int, Origin]] = {}

    def origins(self, file: ProgramModule, node: ast.expr) -> list[Origin]:
        """The expressions that may have made the value of this one."""
        key = (id(node), None)
        if key not in self._memo:
            self._memo[key] = {id(item.node): item for item in self._trace(file, node, None, _DEPTH, set())}
        return list(self._memo[key].values())

    def comes_from(self, file: ProgramModule, node: ast.expr, made: ast.expr) -> bool:
        """Whether the value of an expression may be the one that `made` makes."""
        return any(item.node is made for item in self.origins(file, node))

    def visits(self, file: ProgramModule, node: ast.expr) -> set[int]:
        """The ids of all expressions through which the value of this one may have come."""
        seen: set[_Seen] = set()
        for _ in self._trace(file, node, None, _DEPTH, seen):
            pass
        return {found for found, _, _ in seen}

    def callee(self, file: ProgramModule, call: ast.Call) -> ProgramDefinition | None:
        """The function of the program that a call runs; of a class its __init__, if the program writes one."""
        found = self.program.definition(file, call.func)
        if found is None and isinstance(call.func, ast.Attribute):
            found = self._method(file, call.func)
        if found is None and isinstance(call.func, (ast.Name, ast.Attribute)):
            found = self._called_object(file, call.func)
        if found is not None and isinstance(found.node, ast.ClassDef):
            start = own_method(found.node, "__init__")
            return ProgramDefinition(found.file, start) if start else found
        return found

    def class_of(self, file: ProgramModule, call: ast.expr) -> ProgramDefinition | None:
        """The class of the program that a call makes an instance of."""
        found = self.program.definition(file, call.func) if isinstance(call, ast.Call) else None
        return found if found and isinstance(found.node, ast.ClassDef) else None

    def _method(self, file: ProgramModule, function: ast.Attribute) -> ProgramDefinition | None:
        """The method that `object.name` stands for."""
        if id(function) not in self._methods:
            self._methods[id(function)] = (
                None  # while it is being looked for: a method may be called on its result
            )
            self._methods[id(function)] = self._look_for_method(file, function)
        return self._methods[id(function)]

    def _look_for_method(self, file: ProgramModule, function: ast.Attribute) -> ProgramDefinition | None:
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            owner = self._class_around(file, function)
            return self._find_method(ProgramDefinition(file, owner), function.attr) if owner else None
        if called_name(function.value) == "super":
            return self._inherited(file, function)
        for origin in self._trace(file, function.value, None, 6, set()):
            made = self.class_of(origin.file, origin.node)
            found = self._find_method(made, function.attr) if made else None
            if found is not None:
                return found
        return None

    def _called_object(
        self, file: ProgramModule, function: ast.Name | ast.Attribute
    ) -> ProgramDefinition | None:
        """The __call__ of the object that a variable holds."""
        if not self._has_called_objects:
            return None
        key = -id(function)  # `a.b` as a method of a, and as an object that is called, are two questions
        if key not in self._methods:
            self._methods[key] = None
            made = (self.class_of(*origin) for origin in self._trace(file, function, None, 6, set()))
            found = (self._find_method(item, "__call__") for item in made if item is not None)
            self._methods[key] = next((item for item in found if item is not None), None)
        return self._methods[key]

    @cached_property
    def _has_called_objects(self) -> bool:
        return any(b"def __call__" in file.module.data for file in self.program.files.values())

    def _inherited(self, file: ProgramModule, function: ast.Attribute) -> ProgramDefinition | None:
        """The method that `super().name` stands for."""
        owner = self._class_around(file, function)
        for base in owner.bases if owner else ():
            above = self.program.definition(file, base)
            found = self._find_method(above, function.attr) if above else None
            if found is not None:
                return found
        return None

    def _find_method(self, owner: ProgramDefinition, name: str, depth: int = 4) -> ProgramDefinition | None:
        if not isinstance(owner.node, ast.ClassDef):
            return None
        found = own_method(owner.node, name)
        if found is not None:
            return ProgramDefinition(owner.file, found)
        for base in owner.node.bases if depth else ():
            above = self.program.definition(owner.file, base)
            inherited = self._find_method(above, name, depth - 1) if above else None
            if inherited is not None:
                return inherited
        return None

    def _class_around(self, file: ProgramModule, node: ast.AST) -> ast.ClassDef | None:
        surroundings = file.surroundings(node)
        scope = surroundings.scope if surroundings else None
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return scope.node if scope and isinstance(scope.node, ast.ClassDef) else None

    @property
    def sites(self) -> dict[int, list[CallSite]]:
        """By the id of a function: its calls."""
        if self._sites is None:
            self._sites = {}  # what is known so far is enough for finding the rest
            self._find_sites(self._sites)
            self._methods.clear()  # more can be told now that all calls are known
        return self._sites

    def _find_sites(self, sites: dict[int, list[CallSite]]) -> None:
        with_objects: list[CallSite] = []
        for file in self.program.files.values():
            for call in file.calls:
                found = self.program.definition(file, call.func)
                if found is None and isinstance(call.func, (ast.Name, ast.Attribute)):
                    with_objects.append(CallSite(file, call))
                elif found is not None:
                    _note(sites, self.callee(file, call), CallSite(file, call))
        for site in with_objects:  # these are found through the ones above
            callee = self.callee(site.file, site.call)
            _note(sites, callee, site)
            for override in self._overrides(site, callee):
                _note(sites, override, site)

    def _overrides(self, site: CallSite, callee: ProgramDefinition | None) -> Iterator[ProgramDefinition]:
        """What `self.method()` may run besides: the methods of that name of derived classes."""
        function = site.call.func
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return
        owner = self._class_around(site.file, function) if function.value.id == "self" else None
        for derived in self._derived.get(id(owner), ()):
            found = (
                own_method(derived.node, function.attr) if isinstance(derived.node, ast.ClassDef) else None
            )
            if found is not None and (callee is None or found is not callee.node):
                yield ProgramDefinition(derived.file, found)

    @cached_property
    def _derived(self) -> dict[int, list[ProgramDefinition]]:
        """By the id of a class: those that derive from it."""
        found: dict[int, list[ProgramDefinition]] = {}
        for file in self.program.files.values():
            for node in ast.walk(file.module.tree):
                for base in node.bases if isinstance(node, ast.ClassDef) else ():
                    above = self.program.definition(file, base)
                    if above is not None and isinstance(node, ast.ClassDef):
                        found.setdefault(id(above.node), []).append(ProgramDefinition(file, node))
        return found

    def _trace(
        self,
        file: ProgramModule,
        node: ast.expr,
        key: Key | None,
        depth: int,
        seen: set[_Seen],
        entered: Mapping[int, ast.Call] = MappingProxyType({}),
    ) -> Iterator[Origin]:
        """`key`: not the value itself is asked for, but what it holds there.

        `entered`: by the id of a function, the call through which its result was come to.
        """
        around = self._function_around(file, node)
        asked = (id(node), key, id(entered.get(around)))
        if not depth or asked in seen:
            return
        seen.add(asked)
        for other_file, other, other_key in self._steps(file, node, key, entered):
            if other is node and other_key == key:
                yield Origin(other_file, other)
                continue
            inside = self._function_around(other_file, other)
            is_result = isinstance(node, ast.Call) and inside != around
            further = {**entered, inside: node} if is_result and isinstance(node, ast.Call) else entered
            yield from self._trace(other_file, other, other_key, depth - 1, seen, further)

    def _function_around(self, file: ProgramModule, node: ast.expr) -> int:
        surroundings = file.surroundings(node)
        return id(surroundings.scope.node) if surroundings else 0

    def _steps(
        self, file: ProgramModule, node: ast.expr, key: Key | None, entered: Mapping[int, ast.Call]
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        """The expressions whose value this one takes over; itself if it makes one."""
        if isinstance(node, ast.Name):
            yield from self._of_name(file, node, key, entered)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(file, node, key)
        elif isinstance(node, ast.Call):
            yield from self._of_call(file, node, key)
        elif isinstance(node, ast.IfExp):
            yield from ((file, branch, key) for branch in (node.body, node.orelse))
        elif isinstance(node, ast.BoolOp):
            yield from ((file, value, key) for value in node.values)
        elif isinstance(node, (ast.NamedExpr, ast.Starred)):
            yield file, node.value, key
        elif isinstance(node, ast.Subscript):
            given = node.slice.value if isinstance(node.slice, ast.Constant) else ANY
            if key is None and isinstance(given, (str, int)):
                yield file, node.value, given
        elif isinstance(node, (ast.Constant, ast.Dict, ast.DictComp)) and key is None:
            yield file, node, None
        elif key is not None:
            yield from ((file, held, None) for held in _held(node, key))

    def _of_name(
        self, file: ProgramModule, node: ast.Name, key: Key | None, entered: Mapping[int, ast.Call]
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        surroundings = file.surroundings(node)
        owner = surroundings.scope.owner_of(node.id) if surroundings else None
        for binding in owner.bindings[node.id] if owner else ():
            if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                yield file, binding.value, key
            elif binding.kind is BindingKind.OTHER and key is None:
                yield from self._unpacked(file, binding)
            elif binding.kind is BindingKind.PARAMETER and owner and isinstance(owner.node, FUNCTIONS):
                call = entered.get(id(owner.node))
                yield from ((*value, key) for value in self._arguments(owner.node, node.id, call))

    def _unpacked(
        self, file: ProgramModule, binding: Binding
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        """`a, b = value`: the value's item at the name's place."""
        target = file.parent(binding.node)
        assign = file.parent(target) if isinstance(target, (ast.Tuple, ast.List)) else None
        if isinstance(assign, ast.Assign) and isinstance(target, (ast.Tuple, ast.List)):
            place = next((index for index, item in enumerate(target.elts) if item is binding.node), None)
            if place is not None:
                yield file, assign.value, place

    def _arguments(
        self, function: FunctionNode, name: str, call: ast.Call | None
    ) -> Iterator[tuple[ProgramModule, ast.expr]]:
        """What the calls of a function, or one of them, hand over as one of its parameters."""
        for site in self.sites.get(id(function), ()):
            value = argument_for(site.call, function, name)
            if value is not None and call in (None, site.call):
                yield site.file, value

    def _of_attribute(
        self, file: ProgramModule, node: ast.Attribute, key: Key | None
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        if node.attr == "module":  # of a wrapped model
            yield file, node.value, key
        found = self._attributes.get(node.attr, [])
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            own = self._class_around(file, node)
            found = [item for item in found if item.owner is own] or found
        for given in found:
            if given.place is None:
                yield given.file, given.value, key
            elif key is None:
                yield given.file, given.value, given.place

    @cached_property
    def _attributes(self) -> dict[str, list[_Given]]:
        """By name: the values that attributes of this name are given."""
        found: dict[str, list[_Given]] = {}
        for file in self.program.files.values():
            for statement in file.statements:
                if isinstance(statement, ASSIGNMENTS) and statement.value is not None:
                    for target, place in _placed(assigned_to(statement)):
                        if isinstance(target, ast.Attribute):
                            given = _Given(file, statement.value, place, self._class_around(file, target))
                            found.setdefault(target.attr, []).append(given)
        return found

    def _of_call(
        self, file: ProgramModule, node: ast.Call, key: Key | None
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        found = self.program.definition(file, node.func)
        name = last_name(node.func)
        if found is None and isinstance(node.func, ast.Attribute) and name in _SAME_OBJECT:
            yield file, node.func.value, key
        elif found is None and node.args and (name in _SAME_ARGUMENT or name in _WRAPPERS):
            yield from ((file, argument, key) for argument in node.args)
        elif found is not None and isinstance(found.node, FUNCTIONS):
            yield from ((found.file, value, key) for value in _results(found.node))
        elif found is None and isinstance(node.func, ast.Attribute) and self._method(file, node.func):
            method = self._method(file, node.func)
            if method is not None and isinstance(method.node, FUNCTIONS):
                yield from ((method.file, value, key) for value in _results(method.node))
        else:
            yield file, node, key


def _note(sites: dict[int, list[CallSite]], callee: ProgramDefinition | None, site: CallSite) -> None:
    if callee is not None:
        sites.setdefault(id(callee.node), []).append(site)


def _placed(nodes: list[ast.expr]) -> Iterator[tuple[ast.expr, int | None]]:
    """Targets of an assignment, each with its place in a tuple."""
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.List)):
            yield from ((item, place) for place, item in enumerate(node.elts))
        else:
            yield node, None


def _held(node: ast.expr, key: Key) -> Iterator[ast.expr]:
    """What a literal holds under a key."""
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(key, int) and key < len(node.elts):
        yield node.elts[key]
    elif isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if key == ANY or (isinstance(name, ast.Constant) and name.value == key):
                yield value
    elif isinstance(node, ast.DictComp):
        yield node.value


def _results(function: FunctionNode) -> list[ast.expr]:
    """What a function returns; of a generator what it goes over to yield it."""
    return [*returned(function), *(loop.iter for loop in yielding_loops(function))]
