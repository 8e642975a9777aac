"""Where the arguments of a call go, as far as what it calls is defined in the same project, and where values are kept."""

from __future__ import annotations

import ast

from torchferry.conversion.program.definitions import Lookup, ProjectDefinition, given_instance, is_partial
from torchferry.conversion.program.functions import FUNCTIONS, positional
from torchferry.conversion.program.slots import (
    AnySite,
    Member,
    ReturnValue,
    Slot,
    Variable,
    around,
    key_of,
    member,
    target_slots,
    text_of,
)
from torchferry.conversion.site import FileContext
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import Scope

_DEPTH = 4  # objects whose makers are followed
# What makes an object of its keywords, whatever they are called.
_RECORDS = frozenset(
    {"dict", "ordereddict", "configdict", "easydict", "edict", "attrdict", "munch", "box"}
    | {"simplenamespace", "namespace", "update", "set_defaults"}
)
_SAME_VALUE = frozenset({"lower", "strip", "startswith", "endswith", "split", "partition"})


Callee = ProjectDefinition[FileContext]


def lookup_of(view: FileContext) -> Lookup[FileContext]:
    """Looks up what names of a module stand for; of objects it knows what was made near by."""
    return Lookup(view.neighbours, view.beside, _object_method)


def callee_of(site: AnySite, function: ast.expr) -> Callee | None:
    """The definition that an expression in the place of a function stands for."""
    return lookup_of(site.context).definition(site.context, function, site.scope, site.place.shadowed)


def _object_method(
    view: FileContext, function: ast.Attribute, scope: Scope, shadowed: frozenset[str], depth: int
) -> Callee | None:
    """`net.run` of an object that was made here, or of one about which no more is known than that one class has it."""
    owner = _class_of(view, function.value, scope, shadowed, depth)
    return lookup_of(view).method(owner, function.attr) if owner else _only_method(view, function.attr)


def class_of(site: AnySite, owner: ast.expr) -> Callee | None:
    """The class of an object that was made here: `net = Net()`, `Net()`."""
    return _class_of(site.context, owner, site.scope, site.place.shadowed, _DEPTH)


def _class_of(
    view: FileContext, owner: ast.expr, scope: Scope, shadowed: frozenset[str], depth: int
) -> Callee | None:
    if isinstance(owner, ast.Name) and owner.id not in shadowed:
        binding = view.module.binding_of(owner.id, scope, owner.lineno)
        if binding is not None and binding.value is not None:
            scope, shadowed = scope.owner_of(owner.id) or scope, frozenset()
            owner = binding.value
    if not isinstance(owner, ast.Call):
        return None
    found = lookup_of(view).definition(view, owner.func, scope, shadowed, depth)
    return found if found and isinstance(found.node, ast.ClassDef) else None


def _only_method(view: FileContext, name: str) -> Callee | None:
    """The method of this name, if just one class of the module has one: of an object nobody knows more about."""
    found = [
        ProjectDefinition(view, binding.node, given_instance(binding.node))
        for scope in view.module.scopes.scopes
        if scope.is_class
        for binding in scope.bindings.get(name, ())
        if isinstance(binding.node, FUNCTIONS)
    ]
    return found[0] if len(found) == 1 else None


def related(view: FileContext, one: ast.ClassDef, other: ast.ClassDef) -> bool:
    """Whether two classes of a module share attributes: the same, or one is a base of the other."""
    lookup = lookup_of(view)
    return one is other or any(
        base.node is second
        for first, second in ((one, other), (other, one))
        for base in lookup.all_bases(ProjectDefinition(view, first))
    )


def parameter(callee: Callee, position: int, keyword: str = "") -> Slot | None:
    """Where an argument of a call ends up, by its position or its keyword."""
    called = lookup_of(callee.file).runs(callee)
    if called is None:
        return _field(callee, position + callee.given, keyword)
    node = called.node
    assert isinstance(node, FUNCTIONS)
    names = positional(node)
    if keyword:
        known = keyword in names or any(item.arg == keyword for item in node.args.kwonlyargs)
        return Variable(called.file.path, node, keyword) if known else None
    position += called.given
    if position < len(names):
        return Variable(called.file.path, node, names[position])
    return Variable(called.file.path, node, node.args.vararg.arg) if node.args.vararg else None


def _field(callee: Callee, position: int, keyword: str) -> Slot | None:
    """A field of a class without __init__: of a dataclass, a NamedTuple."""
    assert isinstance(callee.node, ast.ClassDef)
    fields = [
        item.target.id
        for item in callee.node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    name = _field_name(fields, position, keyword)
    return Member(callee.file.path, callee.node, name) if name else None


def _field_name(fields: list[str], position: int, keyword: str) -> str:
    """The field that an argument fills, by its position or its keyword; "" if none."""
    if keyword:
        return keyword if keyword in fields else ""
    return fields[position] if position < len(fields) else ""


def argument_slots(site: AnySite, call: ast.Call, position: int, keyword: str = "") -> tuple[Slot, ...]:
    """Where an argument of a call goes: a parameter, a field; an entry of dict(...) and the like."""
    if is_partial(call) and (position or keyword):
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
        return (ReturnValue(callee.file.path, callee.node),)
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
    found = lookup_of(site.context).imported_name(site.context, node, site.scope, site.place.shadowed)
    if found is None:
        return None
    view, definition = found.file, found.definition
    if definition.attributes:
        binding = definition.binding_in(view.module)
        owner = binding.node if binding and isinstance(binding.node, ast.ClassDef) else None
        return Member(view.path, owner, definition.attributes[-1])
    return Variable(view.path, view.module.tree, definition.name)
