"""The modules that a training script reaches, and where the values in them come from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from torchferry.conversion.program.definitions import Lookup, ProjectDefinition, given_instance, is_partial
from torchferry.conversion.program.functions import (
    ASSIGNMENTS,
    FUNCTIONS,
    FunctionNode,
    argument_for,
    assigned_to,
    is_self,
    own_method,
    returned,
    yielding_loops,
)
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.source.module import PythonModule
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import Binding, BindingKind

_MOST_MODULES = 300


ProgramDefinition = ProjectDefinition[ProgramModule]


class TrainingProgram:
    """The script and every module of the project that it imports, directly or not."""

    def __init__(
        self, main: str, neighbours: Neighbours, known: Mapping[str, PythonModule] | None = None
    ) -> None:
        self._neighbours = neighbours
        self._known = known or {}
        self.files: dict[str, ProgramModule] = {}
        waiting = [main]
        while waiting and len(self.files) < _MOST_MODULES:
            path = waiting.pop()
            module = self._known.get(path) or self._neighbours.module(path)
            if path in self.files or module is None:
                continue
            self.files[path] = ProgramModule(path, module)
            names = {binding.qualified for _, binding in module.scopes.imports} | module.scopes.modules
            waiting += filter(None, (neighbours.reached(path, name) for name in sorted(filter(None, names))))
        self.main = self.files.get(main)
        self.lookup = Lookup(neighbours, self.files.get)
        self._definitions: dict[int, ProgramDefinition | None] = {}  # by the id of the expression

    @property
    def calls(self) -> Iterator[tuple[ProgramModule, ast.Call]]:
        """Every call of the program."""
        return ((file, call) for file in self.files.values() for call in file.calls)

    @property
    def statements(self) -> Iterator[tuple[ProgramModule, ast.stmt]]:
        """Every statement of the program."""
        return ((file, statement) for file in self.files.values() for statement in file.statements)

    def definition(self, file: ProgramModule, node: ast.expr) -> ProgramDefinition | None:
        """The function or class of the program that an expression stands for, by names alone."""
        if id(node) not in self._definitions:
            place, found = file.surroundings(node), None
            if place is not None and (isinstance(node, (ast.Name, ast.Attribute)) or is_partial(node)):
                found = self.lookup.definition(file, node, place.scope, file.shadowed(node))
            self._definitions[id(node)] = found
        return self._definitions[id(node)]


# Where values come from: traced back through names, attributes, containers, calls and returns.

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


class ProgramFunction(NamedTuple):
    """A function of the program, and how many of its first parameters a call of it does not write."""

    file: ProgramModule
    node: FunctionNode
    given: int


class Origin(NamedTuple):
    """An expression that makes a value: a constant, or a call that is not one of the program's functions."""

    file: ProgramModule
    node: ast.expr


class CallSite(NamedTuple):
    """A call of a function of the program."""

    file: ProgramModule
    call: ast.Call
    given: int = 0  # parameters before that of the first argument


class GivenValue(NamedTuple):
    """A value that a variable, an attribute or a parameter is given."""

    file: ProgramModule
    value: ast.expr
    place: int | None = None  # which item of the value: `self.a, self.b = value`
    owner: ast.ClassDef | None = None  # the class in which an attribute is given it
    is_argument: bool = False


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

    def comes_from(self, file: ProgramModule, node: ast.expr, *made: Origin) -> bool:
        """Whether the value of an expression may be one of those that these make."""
        nodes = [item.node for item in made]
        return any(item.node is each for item in self.origins(file, node) for each in nodes)

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
            found = self._object_method(file, call.func)
        if found is None and isinstance(call.func, (ast.Name, ast.Attribute)):
            found = self._called_object(file, call.func)
        return (self.program.lookup.runs(found) or found) if found is not None else None

    def function_called(self, file: ProgramModule, call: ast.AST) -> ProgramFunction | None:
        """The function of the program that a call runs; None also for a class without an __init__."""
        callee = self.callee(file, call) if isinstance(call, ast.Call) else None
        if callee is None or not isinstance(callee.node, FUNCTIONS):
            return None
        return ProgramFunction(callee.file, callee.node, callee.given)

    def class_of(self, file: ProgramModule, call: ast.expr) -> ProgramDefinition | None:
        """The class of the program that a call makes an instance of."""
        found = self.program.definition(file, call.func) if isinstance(call, ast.Call) else None
        return found if found and isinstance(found.node, ast.ClassDef) else None

    def _object_method(self, file: ProgramModule, function: ast.Attribute) -> ProgramDefinition | None:
        """The method that `object.name` stands for."""
        if is_self(function.value) or called_name(function.value) == "super":
            return None  # what the classes have under this name is known by the names alone
        if id(function) not in self._methods:
            # While it is being looked for: a method may be called on its result.
            self._methods[id(function)] = None
            self._methods[id(function)] = self._method_of_value(file, function.value, function.attr)
        return self._methods[id(function)]

    def _method_of_value(self, file: ProgramModule, value: ast.expr, name: str) -> ProgramDefinition | None:
        """The method of this name that the object has which an expression stands for."""
        made = (self.class_of(*origin) for origin in self._trace(file, value, None, 6, set()))
        found = (self.program.lookup.method(item, name) for item in made if item is not None)
        return next((item for item in found if item is not None), None)

    def _called_object(
        self, file: ProgramModule, function: ast.Name | ast.Attribute
    ) -> ProgramDefinition | None:
        """The __call__ of the object that a variable holds."""
        if not self._has_called_objects:
            return None
        key = -id(function)  # `a.b` as a method of a, and as an object that is called, are two questions
        if key not in self._methods:
            self._methods[key] = None
            self._methods[key] = self._method_of_value(file, function, "__call__")
        return self._methods[key]

    @cached_property
    def _has_called_objects(self) -> bool:
        return any(b"def __call__" in file.module.data for file in self.program.files.values())

    def calls_of(self, function: ast.AST | None) -> list[CallSite]:
        """The calls of a function."""
        return self._sites_by_function.get(id(function), [])

    @property
    def _sites_by_function(self) -> dict[int, list[CallSite]]:
        """By the id of a function: its calls."""
        if self._sites is None:
            self._sites = {}  # what is known so far is enough for finding the rest
            self._find_sites(self._sites)
            self._methods.clear()  # more can be told now that all calls are known
        return self._sites

    def _find_sites(self, sites: dict[int, list[CallSite]]) -> None:
        def note(file: ProgramModule, call: ast.Call, callee: ProgramDefinition | None) -> None:
            for found in (callee, *self._overrides(file, call.func, callee)):
                if found is not None:
                    sites.setdefault(id(found.node), []).append(CallSite(file, call, found.given))

        with_objects: list[tuple[ProgramModule, ast.Call]] = []
        for file in self.program.files.values():
            for call in file.calls:
                found = self.program.definition(file, call.func)
                if found is None and isinstance(call.func, (ast.Name, ast.Attribute)):
                    with_objects.append((file, call))
                elif found is not None:
                    note(file, call, self.callee(file, call))
        for file, call in with_objects:  # these are found through the ones above
            note(file, call, self.callee(file, call))

    def _overrides(
        self, file: ProgramModule, function: ast.expr, callee: ProgramDefinition | None
    ) -> Iterator[ProgramDefinition]:
        """What `self.method()` may run besides: the methods of that name of derived classes."""
        if not isinstance(function, ast.Attribute) or not is_self(function.value):
            return
        owner = file.class_around(function)
        for other, derived in self._derived.get(id(owner), ()):
            found = own_method(derived, function.attr)
            if found is not None and (callee is None or found is not callee.node):
                yield ProgramDefinition(other, found, given_instance(found))

    @cached_property
    def _derived(self) -> dict[int, list[tuple[ProgramModule, ast.ClassDef]]]:
        """By the id of a class: those that derive from it."""
        found: dict[int, list[tuple[ProgramModule, ast.ClassDef]]] = {}
        for file in self.program.files.values():
            for node in ast.walk(file.module.tree):
                for base in node.bases if isinstance(node, ast.ClassDef) else ():
                    above = self.program.definition(file, base)
                    if above is not None and isinstance(node, ast.ClassDef):
                        found.setdefault(id(above.node), []).append((file, node))
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
        """What makes a value; with a `key` what makes that which it holds there.

        `entered` has, by the id of a function, the call whose result was followed into it.
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
            yield from _items(self.values_of(file, node, entered), key)
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

    def values_of(
        self, file: ProgramModule, name: ast.Name, entered: Mapping[int, ast.Call] = MappingProxyType({})
    ) -> Iterator[GivenValue]:
        """What a variable is given: by assignments, or by the calls of the function whose parameter it is."""
        owner, bindings = file.bindings(name)
        if owner is None or any(binding.kind is BindingKind.IMPORT for binding in bindings):
            yield from self._of_imported(file, name)
        for binding in bindings:
            if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                yield GivenValue(file, binding.value)
            elif binding.kind is BindingKind.OTHER:
                yield from _of_unpacking(file, binding)
            elif binding.kind is BindingKind.PARAMETER and owner and isinstance(owner.node, FUNCTIONS):
                yield from self.arguments(owner.node, name.id, entered.get(id(owner.node)))

    def _of_imported(self, file: ProgramModule, node: ast.Name | ast.Attribute) -> Iterator[GivenValue]:
        """`loader` of `from data import loader`, and `data.loader`: what the other module gives it."""
        place = file.surroundings(node)
        found = (
            self.program.lookup.imported_name(file, node, place.scope, file.shadowed(node)) if place else None
        )
        if found is None or found.definition.attributes:
            return
        for binding in found.file.module.scopes.root.bindings.get(found.definition.name, ()):
            if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                yield GivenValue(found.file, binding.value)
            elif binding.kind is BindingKind.OTHER:
                yield from _of_unpacking(found.file, binding)

    def arguments(
        self, function: FunctionNode, name: str, call: ast.Call | None = None
    ) -> Iterator[GivenValue]:
        """What the calls of a function, or one of them, hand over as one of its parameters."""
        sites = [site for site in self.calls_of(function) if call in (None, site.call)]
        for site in (*sites, *self._partials.get(id(function), ())):
            value = argument_for(site.call, function, name, site.given)
            if value is not None:
                yield GivenValue(site.file, value, is_argument=True)

    @cached_property
    def _partials(self) -> dict[int, list[CallSite]]:
        """By the id of a function: where partial() binds parameters of it, its own first argument being the function."""
        found: dict[int, list[CallSite]] = {}
        for file, call in self.program.calls:
            defined = self.program.definition(file, call.args[0]) if is_partial(call) else None
            called = self.program.lookup.runs(defined) if defined else None
            if called is not None:
                found.setdefault(id(called.node), []).append(CallSite(file, call, called.given - 1))
        return found

    def _of_attribute(
        self, file: ProgramModule, node: ast.Attribute, key: Key | None
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        if node.attr == "module":  # of a wrapped model
            yield file, node.value, key
        found = self._attributes.get(node.attr, [])
        if is_self(node.value):
            own = file.class_around(node)
            found = [item for item in found if item.owner is own] or found
        yield from _items([*self._of_imported(file, node)] or found, key)

    def values_of_attribute(self, name: str) -> Iterator[GivenValue]:
        """The values that attributes of this name are given, but for items of values."""
        return (given for given in self._attributes.get(name, ()) if given.place is None)

    @cached_property
    def _attributes(self) -> dict[str, list[GivenValue]]:
        """By name: the values that attributes of this name are given."""
        found: dict[str, list[GivenValue]] = {}
        for file in self.program.files.values():
            for statement in file.statements:
                if isinstance(statement, ASSIGNMENTS) and statement.value is not None:
                    for target, place in _placed(assigned_to(statement)):
                        if isinstance(target, ast.Attribute):
                            given = GivenValue(file, statement.value, place, file.class_around(target))
                            found.setdefault(target.attr, []).append(given)
        return found

    def _of_call(
        self, file: ProgramModule, node: ast.Call, key: Key | None
    ) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
        found = self.program.definition(file, node.func)
        name = last_name(node.func)
        if found is None and isinstance(node.func, ast.Attribute) and name in _SAME_OBJECT:
            yield file, node.func.value, key
            return
        if found is None and node.args and (name in _SAME_ARGUMENT or name in _WRAPPERS):
            yield from ((file, argument, key) for argument in node.args)
            return
        if found is None and isinstance(node.func, ast.Attribute):
            found = self._object_method(file, node.func)
        if found is not None and isinstance(found.node, FUNCTIONS):
            # Of a generator what it goes over to yield it.
            results = [*returned(found.node), *(loop.iter for loop in yielding_loops(found.node))]
            yield from ((found.file, value, key) for value in results)
        else:
            yield file, node, key


def _items(
    values: Iterable[GivenValue], key: Key | None
) -> Iterator[tuple[ProgramModule, ast.expr, Key | None]]:
    """What is asked of these values: what they hold under a key; of an item of a value only the item itself."""
    for given in values:
        if given.place is None:
            yield given.file, given.value, key
        elif key is None:
            yield given.file, given.value, given.place


def _of_unpacking(file: ProgramModule, binding: Binding) -> Iterator[GivenValue]:
    """`a, b = value`: the value's item at the name's place."""
    target = file.parent(binding.node)
    assign = file.parent(target) if isinstance(target, (ast.Tuple, ast.List)) else None
    if isinstance(assign, ast.Assign) and isinstance(target, (ast.Tuple, ast.List)):
        place = next(index for index, item in enumerate(target.elts) if item is binding.node)
        yield GivenValue(file, assign.value, place)


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
