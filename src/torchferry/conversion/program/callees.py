"""What a call calls, as far as it is defined in the same project: functions, methods, classes, partial()."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torchferry.conversion.program.functions import FUNCTIONS, FunctionNode, own_method, positional
from torchferry.conversion.program.slots import (
    AnySite,
    Member,
    ReturnValue,
    Slot,
    Variable,
    around,
    is_self,
    key_of,
    member,
    target_slots,
    text_of,
)
from torchferry.conversion.site import FileContext, Site, enclosing_class
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import BindingKind
from torchferry.source.walk import WalkState

_DEPTH = 4  # aliases and base classes that are followed
# What makes an object of its keywords, whatever they are called.
_RECORDS = frozenset(
    {"dict", "ordereddict", "configdict", "easydict", "edict", "attrdict", "munch", "box"}
    | {"simplenamespace", "namespace", "update", "set_defaults"}
)
_SAME_VALUE = frozenset({"lower", "strip", "startswith", "endswith", "split", "partition"})


@dataclass(frozen=True)
class ProjectCallee:
    """A function or a class, and how many of its first parameters the caller does not write."""

    view: FileContext
    node: FunctionNode | ast.ClassDef
    given: int = 0


def callee_of(site: AnySite, function: ast.expr, depth: int = _DEPTH) -> ProjectCallee | None:
    """The definition that an expression in the place of a function stands for."""
    if not depth:
        return None
    if isinstance(function, ast.Name):
        return _by_name(site, function, depth)
    if called_name(function) == "partial" and isinstance(function, ast.Call) and function.args:
        # `partial(run, x)`: the function itself, with one argument given.
        found = callee_of(site, function.args[0], depth - 1)
        return replace(found, given=found.given + len(function.args) - 1) if found else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = function.value
    around = class_around(site)
    if around is not None and called_name(owner) == "super":
        return _first(method_of(base, function.attr) for base in _bases(around))
    if around is not None and is_self(owner):
        return method_of(around, function.attr)
    resolved = site.resolve(function)
    imported = defined(site.context, resolved.qualified) if resolved and resolved.binding else None
    if imported is not None:
        return imported
    itself = callee_of(site, owner, depth - 1)
    if itself is not None and isinstance(itself.node, ast.ClassDef):
        found = method_of(itself, function.attr)
        if found is None or {"staticmethod", "classmethod"} & _decorators(found.node):
            return found
        return replace(found, given=found.given - 1)  # called through its class: the instance is written
    instance = class_of(site, owner, depth)
    return method_of(instance, function.attr) if instance else _only_method(site.context, function.attr)


def parameter(callee: ProjectCallee, position: int, keyword: str = "") -> Slot | None:
    """Where an argument of a call ends up, by its position or its keyword."""
    node = callee.node
    if isinstance(node, ast.ClassDef):
        creator = method_of(replace(callee, given=0), "__init__")
        return parameter(creator, position, keyword) if creator else _field(callee, position, keyword)
    arguments = node.args
    names = positional(node)
    if keyword:
        known = keyword in names or any(item.arg == keyword for item in arguments.kwonlyargs)
        return Variable(callee.view.path, node, keyword) if known else None
    position += callee.given
    if position < len(names):
        return Variable(callee.view.path, node, names[position])
    return Variable(callee.view.path, node, arguments.vararg.arg) if arguments.vararg else None


def method_of(callee: ProjectCallee, name: str, depth: int = _DEPTH) -> ProjectCallee | None:
    """A method of a class or of its bases, called on an instance."""
    if not isinstance(callee.node, ast.ClassDef) or not depth:
        return None
    own = own_method(callee.node, name)
    if own is not None:
        return ProjectCallee(callee.view, own, _given_instance(own))
    return _first(method_of(base, name, depth - 1) for base in _bases(callee))


def _given_instance(method: FunctionNode) -> int:
    return 0 if "staticmethod" in _decorators(method) else 1


def defined(view: FileContext, qualified: str) -> ProjectCallee | None:
    """A function, class or method of the project by its dotted name, as a module imports it."""
    definition = view.neighbours.find(view.path, qualified)
    if definition is None:
        return None
    other = view.beside(definition.path)
    node = definition.node_in(other.module) if other else None
    if other is None or not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return None
    found: ProjectCallee | None = ProjectCallee(other, node)
    for name in definition.attributes:
        found = method_of(found, name) if found else None
    return found


def related(view: FileContext, one: ast.ClassDef, other: ast.ClassDef) -> bool:
    """Whether two classes of a module share attributes: the same, or one is a base of the other."""
    return one is other or any(
        base.node is second
        for first, second in ((one, other), (other, one))
        for base in all_bases(ProjectCallee(view, first))
    )


def all_bases(callee: ProjectCallee, depth: int = _DEPTH) -> Iterator[ProjectCallee]:
    """The classes of the project that a class is made of, without itself."""
    for base in _bases(callee) if depth else ():
        yield base
        yield from all_bases(base, depth - 1)


def _bases(callee: ProjectCallee) -> Iterator[ProjectCallee]:
    node = callee.node
    if not isinstance(node, ast.ClassDef):
        return
    site: AnySite = Site(callee.view, node, WalkState(node, callee.view.module.scopes.root))
    for base in node.bases:
        found = callee_of(site, base, depth=2)
        if found is not None and isinstance(found.node, ast.ClassDef) and found.node is not node:
            yield found


def _by_name(site: AnySite, name: ast.Name, depth: int) -> ProjectCallee | None:
    if name.id in site.place.shadowed:
        return None
    binding = site.module.binding_of(name.id, site.scope, name.lineno)
    if binding is None:
        return _first(defined(site.context, f"{star}.{name.id}") for star in site.module.scopes.stars)
    if binding.kind is BindingKind.IMPORT:
        return defined(site.context, binding.qualified)
    if isinstance(binding.node, (*FUNCTIONS, ast.ClassDef)):
        return ProjectCallee(site.context, binding.node)
    value = binding.value
    is_reference = isinstance(value, (ast.Name, ast.Attribute)) or called_name(value) == "partial"
    return callee_of(site, value, depth - 1) if value is not None and is_reference else None


def class_of(site: AnySite, owner: ast.expr, depth: int = _DEPTH) -> ProjectCallee | None:
    """The class of an object that was made here: `net = Net()`, `Net()`."""
    if isinstance(owner, ast.Name):
        binding = site.module.binding_of(owner.id, site.scope, owner.lineno)
        owner = binding.value if binding and binding.value else owner
    if not isinstance(owner, ast.Call):
        return None
    found = callee_of(site, owner.func, depth - 1)
    return found if found and isinstance(found.node, ast.ClassDef) else None


def _only_method(view: FileContext, name: str) -> ProjectCallee | None:
    """The method of this name, if just one class of the module has one: of an object nobody knows more about."""
    found = [
        ProjectCallee(view, binding.node, _given_instance(binding.node))
        for scope in view.module.scopes.scopes
        if scope.is_class
        for binding in scope.bindings.get(name, ())
        if isinstance(binding.node, FUNCTIONS)
    ]
    return found[0] if len(found) == 1 else None


def class_around(site: AnySite) -> ProjectCallee | None:
    """The class whose method a site is in."""
    scope = enclosing_class(site.scope)
    node = scope.node if scope else None
    return ProjectCallee(site.context, node) if isinstance(node, ast.ClassDef) else None


def _decorators(node: ast.AST) -> set[str]:
    return {last_name(item) for item in node.decorator_list} if isinstance(node, FUNCTIONS) else set()


def _field(callee: ProjectCallee, position: int, keyword: str) -> Slot | None:
    """A field of a class without __init__: of a dataclass, a NamedTuple."""
    assert isinstance(callee.node, ast.ClassDef)
    fields = [
        item.target.id
        for item in callee.node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    name = _field_name(fields, position, keyword)
    return Member(callee.view.path, callee.node, name) if name else None


def _field_name(fields: list[str], position: int, keyword: str) -> str:
    """The field that an argument fills, by its position or its keyword; "" if none."""
    if keyword:
        return keyword if keyword in fields else ""
    return fields[position] if position < len(fields) else ""


def _first(found: Iterator[ProjectCallee | None]) -> ProjectCallee | None:
    return next((item for item in found if item is not None), None)


def argument_slots(site: AnySite, call: ast.Call, position: int, keyword: str = "") -> tuple[Slot, ...]:
    """Where an argument of a call goes: a parameter, a field; an entry of dict(...) and the like."""
    if called_name(call) == "partial" and call.args and (position or keyword):
        callee = callee_of(site, call.args[0])
        position -= 1
    else:
        callee = callee_of(site, call.func)
    if callee is not None:
        slot = parameter(callee, position, keyword)
        return (slot,) if slot else ()
    name = (
        keyword if last_name(call.func).lower() in _RECORDS else _tuple_field(site, call, position, keyword)
    )
    return (Member(site.context.path, None, name),) if name else ()


def _tuple_field(site: AnySite, call: ast.Call, position: int, keyword: str) -> str:
    """The field of `C = namedtuple("C", "a b")` that an argument of `C(...)` fills."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    binding = site.module.binding_of(name, site.scope, call.lineno) if name else None
    made = binding.value if binding else None
    if not isinstance(made, ast.Call) or called_name(made) != "namedtuple" or len(made.args) < 2:
        return ""
    listed = made.args[1]
    if isinstance(listed, (ast.List, ast.Tuple)):
        fields = [text_of(item) for item in listed.elts]
    else:
        fields = text_of(listed).replace(",", " ").split()
    return _field_name(fields, position, keyword)


def passed_to(site: AnySite) -> tuple[Slot, ...]:
    """The parameter that an expression is the argument of, or the variable that it is assigned to."""
    parent, call = site.parent, around(around(site) or site)
    if isinstance(parent, ast.Call) and site.node in parent.args:
        return argument_slots(site, parent, parent.args.index(site.node))
    if isinstance(parent, ast.keyword) and parent.arg and call and isinstance(call.node, ast.Call):
        return argument_slots(site, call.node, 0, parent.arg)
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return tuple(slot for target in targets for slot in target_slots(site, target))
    return ()


def slots_of(site: AnySite, node: ast.expr) -> tuple[Slot, ...]:
    """Where the value of an expression is kept."""
    if isinstance(node, ast.Call):
        key = key_of(node)
        if key is not None:
            return (member(site, *key),)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUE:
            return slots_of(site, node.func.value)
        if called_name(node) == "str" and node.args:
            return slots_of(site, node.args[0])
        callee = callee_of(site, node.func)
        if callee is None or isinstance(callee.node, ast.ClassDef):
            return ()
        return (ReturnValue(callee.view.path, callee.node),)
    if isinstance(node, (ast.Name, ast.Attribute)):
        imported = _imported_slot(site, node)
        if imported is not None:
            return (imported,)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Slice, ast.Constant)):
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, str):
            return slots_of(site, node.value)  # name[:4], parts[0]
    return target_slots(site, node)


def _imported_slot(site: AnySite, node: ast.expr) -> Slot | None:
    """`config.WHERE`, `WHERE` of `from config import WHERE`, `Config.where` of an imported class"""
    resolved = site.resolve(node)
    if resolved is None or resolved.binding is None or resolved.binding.kind is not BindingKind.IMPORT:
        return None
    definition = site.context.neighbours.find(site.context.path, resolved.qualified)
    view = site.context.beside(definition.path) if definition else None
    if definition is None or view is None:
        return None
    if definition.attributes:
        node_of_class = definition.node_in(view.module)
        owner = node_of_class if isinstance(node_of_class, ast.ClassDef) else None
        return Member(view.path, owner, definition.attributes[-1])
    return Variable(view.path, view.module.tree, definition.name)
