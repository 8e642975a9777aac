"""What a string is for, judged by where it stands: a device, certainly not one, or nobody can tell.

The value alone says little: 'cuda' may be a device type, a checkpoint key, an attribute's name or a word of a
message. Its place says more. Every verdict comes with the reason that the report shows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from torchferry.conversion.inference.evidence import (
    CONTAINERS,
    TESTS_OF_TEXT,
    Climb,
    RoleVerdict,
    is_backend_of_device,
)
from torchferry.conversion.program.callees import argument_slots, passed_to, slots_of
from torchferry.conversion.program.functions import FUNCTIONS, positional, with_defaults
from torchferry.conversion.program.slots import (
    GETTERS,
    AnySite,
    Member,
    ReturnValue,
    Slot,
    Variable,
    keys_of,
    member,
    target_slots,
    text_of,
)
from torchferry.conversion.site import Site
from torchferry.finding import Message
from torchferry.source.names import called_name, last_name
from torchferry.text import Text

# A verdict about a string, with the reason that the report shows, and where its value goes from
# there.

IN_MESSAGE = Text("It is part of a message.", "它是提示信息的一部分。")
IS_KEY = Text(
    "It is a key: renaming it would break what was stored under it.", "它是键名：改名会使已保存的内容失效。"
)
IS_ATTRIBUTE = Text("It is the name of an attribute.", "它是属性名。")
IS_PATH = Text("It is part of a file name.", "它是文件名的一部分。")
ALREADY_THERE = Text("The target is already listed beside it.", "目标设备已列在旁边。")
IS_PROSE = Text("It is text on its own.", "它是独立的文本。")
NO_CLUE = Text("Nothing around it says what it is for.", "上下文无法说明其用途。")
DICT_KEY = Text(
    "It is a dictionary key: rename it only if it is looked up by {noun}.",
    "它是字典键：仅当按{noun}查找时才应改名。",
)
_LEFT = Message(
    Text("String that mentions a device, left unchanged", "提到设备的字符串，保持不变"),
    why=Text("{reason}", "{reason}"),
)


@dataclass(frozen=True)
class StringRole:
    """A verdict and why; the slots are for those who want to follow the value where its place does not tell."""

    verdict: RoleVerdict
    reason: Text = Text("", "")
    slots: tuple[Slot, ...] = ()  # what the value is put into
    peers: tuple[Slot, ...] = ()  # what it is compared with

    @property
    def is_prose(self) -> bool:
        """Whether the string is for people to read: nothing to say about it."""
        return self.reason in (IN_MESSAGE, IS_PROSE)


def left_because(role: StringRole) -> Message:
    """The remark about a string that stays."""
    return _LEFT.format(reason=role.reason)


# Values that a decorator hands to the parameters of a test: pytest's parametrize,
# parameterized.expand, fixtures.

_BY_NAME = frozenset({"parametrize", "mark_parametrize", "parameterized_class"})
_BY_POSITION = frozenset({"expand", "parameterized"})


@dataclass(frozen=True)
class ParameterGiven:
    """The parameter that a value becomes; "" if that can't be told, and where it is kept."""

    name: str
    slots: tuple[Slot, ...] = ()


def handed_to(site: AnySite, call: ast.Call, value: ast.AST, indexes: Sequence[int]) -> ParameterGiven | None:
    """What becomes of (an element of) an argument of such a decorator; None if the call is none.

    `indexes` say which element of a row, and which row of the list, the value is.
    """
    keyword = next((item.arg for item in call.keywords if value in (item, item.value)), "")
    name = called_name(call)
    column = indexes[-2] if len(indexes) > 1 else None
    if name in _BY_NAME and (keyword == "argvalues" or value in call.args[1:2]):
        names = _names(call)
        return _given(site, names, 0 if len(names) == 1 else column)
    if name in _BY_POSITION and value in call.args[:1]:
        # parameterized(...), parameterized.expand(...)
        if "parameterized" in (last_name(call.func), last_name(getattr(call.func, "value", None))):
            return _given(site, _parameters(site.place.statement), column or 0)
    statement = site.place.statement
    if name == "fixture" and keyword == "params" and isinstance(statement, FUNCTIONS):
        path = site.context.path
        return ParameterGiven(statement.name, (Member(path, None, "param"), ReturnValue(path, statement)))
    return None


def _names(call: ast.Call) -> list[str]:
    """The parameters that a decorator names: "a", "a, b", ("a", "b")."""
    node = next((item.value for item in call.keywords if item.arg == "argnames"), None)
    node = node or (call.args[0] if call.args else None)
    if isinstance(node, (ast.Tuple, ast.List)):
        return [text_of(item) for item in node.elts]
    return [part.strip() for part in text_of(node).split(",")] if node is not None else []


def _parameters(statement: ast.stmt) -> list[str]:
    if not isinstance(statement, FUNCTIONS):
        return []
    names = positional(statement)
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _given(site: AnySite, names: list[str], index: int | None) -> ParameterGiven:
    """The parameter that has one of these names."""
    statement, path = site.place.statement, site.context.path
    name = names[index] if index is not None and index < len(names) else ""
    if not name:
        return ParameterGiven("")
    if isinstance(statement, ast.ClassDef):
        methods = [item for item in statement.body if isinstance(item, FUNCTIONS)]
        slots: list[Slot] = [Variable(path, item, name) for item in methods if name in _parameters(item)]
        return ParameterGiven(name, (*slots, Member(path, statement, name)))
    return ParameterGiven(
        name, (Variable(path, statement, name),) if isinstance(statement, FUNCTIONS) else ()
    )


_MESSAGES = re.compile(
    r"^(print|warn|warning|info|debug|error|critical|exception|log|log_once|echo|write|fail|skip|xfail|secho|"
    r"print_rank_0|rank_zero_\w+|log_dist|\w+(Error|Exception|Warning))$"
)
_OPTION_FUNCTIONS = re.compile(
    r"^(add_argument|option|argument|Option|Argument|Field|field|attrib|ib|DEFINE_\w+)$"
)
_OPTION_VALUES = frozenset({"default", "choices", "const", "type", "default_factory"})
_COLLECTORS = frozenset({"append", "add", "extend", "insert", "remove", "discard"})
_PATHS = frozenset({"join", "joinpath", "Path", "exists", "isfile", "isdir", "open", "glob"})
_UNCLEAR = StringRole(RoleVerdict.UNCLEAR, NO_CLUE)
# A string that deep in an expression says nothing by its place.
_HIGHEST = 40


class RoleFinder(Climb):
    """Finds the role of one value, a string or an expression that has it; made anew for each site."""

    def judge(self) -> StringRole:
        """Climb from the value to the first node that decides."""
        child: ast.AST = self.site.node
        beside_sibling = False
        for parent in islice(self.site.place.upwards(), _HIGHEST):
            if self.lists_target(parent):
                return StringRole(RoleVerdict.NO, ALREADY_THERE)
            beside_sibling = beside_sibling or self.has_sibling(parent, child)
            if not self.is_transparent(parent, child):
                return self._finished(self._decide(parent, child), beside_sibling)
            self.note(parent, child)
            child = parent
        return self._finished(self._decide_unit(child), beside_sibling)

    def _finished(self, role: StringRole, beside_sibling: bool) -> StringRole:
        # 'cuda' next to 'cpu' is a device, unless it is known to be something else.
        if beside_sibling and role.verdict is RoleVerdict.UNCLEAR:
            return StringRole(RoleVerdict.YES)
        return replace(role, slots=(*self.slots, *role.slots)) if self.slots else role

    def _decide(self, parent: ast.AST, child: ast.AST) -> StringRole:
        if isinstance(parent, ast.keyword):
            return self._decide_keyword(parent)
        if isinstance(parent, ast.Call):
            return self._decide_argument(parent, child)
        if isinstance(parent, ast.Compare):
            return self._decide_comparison(parent, child)
        if isinstance(parent, ast.Dict):
            return self._decide_dict(parent, child)
        if isinstance(parent, ast.Subscript):
            return self._decide_subscript(parent, child)
        if isinstance(parent, ast.comprehension):
            return self._by_target(parent.target, outer=1)
        if isinstance(parent, ast.arguments):
            return self._by_lambda(_parameter_of(parent, child))
        if isinstance(parent, (ast.stmt, ast.MatchValue)):
            return self._decide_statement(parent)
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
            return StringRole(RoleVerdict.NO, IS_PATH)
        return _UNCLEAR

    def _by_lambda(self, name: str) -> StringRole:
        """The default of a lambda's parameter; its name is found where no scope binds it."""
        if self.evidence.fits(name):
            return StringRole(RoleVerdict.YES)
        scope = self.site.scope
        if not name or scope.owner_of(name) is not None:
            return _UNCLEAR
        return self._into(Variable(self.site.context.path, scope.node, name))

    def _decide_unit(self, node: ast.AST) -> StringRole:
        """The string stands alone in its unit: a default, a loop's sequence, a test, an annotation."""
        statement = self.site.place.statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = _parameter_of(statement.args, node)
            if self.evidence.fits(name):
                return StringRole(RoleVerdict.YES)
            return self._into(Variable(self.site.context.path, statement, name)) if name else _UNCLEAR
        if isinstance(statement, (ast.For, ast.AsyncFor)) and node is statement.iter:
            return self._by_target(statement.target, outer=1)
        return _UNCLEAR

    def _decide_keyword(self, keyword: ast.keyword) -> StringRole:
        name = keyword.arg or ""
        calls = (node for node in self.site.place.upwards() if isinstance(node, ast.Call))
        call = next((node for node in calls if keyword in node.keywords), None)
        function = called_name(call) if call else ""
        if name in ("help", "description", "desc", "metavar", "msg", "message"):
            return StringRole(RoleVerdict.NO, IN_MESSAGE)
        if _OPTION_FUNCTIONS.match(function) and name in _OPTION_VALUES:
            return self._decide_option(call)
        if self.evidence.fits(name):
            return StringRole(RoleVerdict.YES)
        given = handed_to(self.site, call, keyword, self.indexes) if call is not None else None
        if given is not None:
            return self._decide_given(given)
        if call is not None and name == "type" and self.site.qualified(call.func) == "torch.device":
            return StringRole(RoleVerdict.YES)
        return self._into(*argument_slots(self.site, call, 0, name)) if call and name else _UNCLEAR

    def _into(self, *slots: Slot) -> StringRole:
        """Nothing here tells, but what becomes of these may."""
        return replace(_UNCLEAR, slots=slots)

    def _decide_option(self, call: ast.Call | None) -> StringRole:
        """A default or the choices of a command-line option or of a field."""
        if call is None:
            return _UNCLEAR
        names = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        texts = [name for name in names if isinstance(name, str)]
        if any(self.evidence.fits(text.lstrip("-").replace("-", "_")) for text in texts):
            return StringRole(RoleVerdict.YES)
        for keyword in call.keywords:
            if keyword.arg == "choices" and isinstance(keyword.value, CONTAINERS):
                if any(self.evidence.mentions_sibling(element) for element in keyword.value.elts):
                    return StringRole(RoleVerdict.YES)
            is_dest = keyword.arg == "dest" and isinstance(keyword.value, ast.Constant)
            if is_dest and self.evidence.fits(str(keyword.value.value)):  # type: ignore[attr-defined]
                return StringRole(RoleVerdict.YES)
        statement = self.site.place.statement
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            if not any(text.startswith("-") for text in texts):
                return self._decide_statement(statement)
        # What a parser calls the option; a click option is a parameter of the function below it.
        dest = next((text_of(item.value) for item in call.keywords if item.arg == "dest"), "")
        long = [text for text in texts if text.startswith("--")]
        name = (dest or (long or texts or [""])[0]).lstrip("-").replace("-", "_")
        if not name:
            return _UNCLEAR
        if isinstance(statement, FUNCTIONS):
            return self._into(Variable(self.site.context.path, statement, name))
        return self._into(Member(self.site.context.path, None, name))

    def _decide_argument(self, call: ast.Call, child: ast.AST) -> StringRole:
        position = next((index for index, item in enumerate(call.args) if item is child), -1)
        name = called_name(call)
        if _MESSAGES.match(name):
            return StringRole(RoleVerdict.NO, IN_MESSAGE)
        if self.evidence.is_known_argument(call, name, position):
            return StringRole(RoleVerdict.YES)
        if position > 0 and _OPTION_FUNCTIONS.match(name):
            return self._decide_option(call)
        if name in ("getattr", "hasattr", "setattr", "delattr") and position == 1:
            return StringRole(RoleVerdict.NO, IS_ATTRIBUTE)
        if name == "setattr" and position == 2 and text_of(call.args[1]):
            attribute = text_of(call.args[1])
            if self.evidence.fits(attribute):
                return StringRole(RoleVerdict.YES)
            return self._into(member(self.site, call.args[0], attribute))
        if self.evidence.fits(name) and position >= 0:
            return StringRole(RoleVerdict.YES)  # to_device(x, "cuda")
        if name in _PATHS:
            return StringRole(RoleVerdict.NO, IS_PATH)
        if name in GETTERS and call.args:
            return self._decide_getter(call, position)
        if isinstance(call.func, ast.Attribute) and (name in TESTS_OF_TEXT or name in _COLLECTORS):
            return self._compared_with(call.func.value)
        given = handed_to(self.site, call, child, self.indexes)
        if given:
            return self._decide_given(given)
        # A function of this project: its parameter's name tells, or what it does with it.
        slots = argument_slots(self.site, call, position) if position >= 0 else ()
        if any(self.evidence.fits(slot.name) for slot in slots if isinstance(slot, (Variable, Member))):
            return StringRole(RoleVerdict.YES)
        return StringRole(self.vocabulary.default, NO_CLUE, slots)

    def _decide_given(self, given: ParameterGiven) -> StringRole:
        return StringRole(RoleVerdict.YES) if self.evidence.fits(given.name) else self._into(*given.slots)

    def _decide_getter(self, call: ast.Call, position: int) -> StringRole:
        """`d.get('device', 'cuda')`: the default has the sort of the key; a key stays a key."""
        key_position = 1 if called_name(call) == "getattr" else 0
        if position == key_position:
            return StringRole(RoleVerdict.NO, IS_KEY)
        key = call.args[key_position] if len(call.args) > key_position else None
        if isinstance(key, ast.Constant) and self.evidence.fits(str(key.value)):
            return StringRole(RoleVerdict.YES)
        return StringRole(self.vocabulary.default, NO_CLUE)

    def _decide_comparison(self, compare: ast.Compare, child: ast.AST) -> StringRole:
        if self._is_tested_beside(compare):
            return StringRole(RoleVerdict.NO, ALREADY_THERE)
        others = [side for side in (compare.left, *compare.comparators) if side is not child]
        # (kind, count) == ("cuda", 2), (kind, count) in [("cuda", 2)]: what the value itself is compared with
        index = self.indexes[0] if self.indexes else None
        return self._compared_with(
            *(
                other.elts[index]
                if isinstance(other, ast.Tuple) and index is not None and index < len(other.elts)
                else other
                for other in others
            )
        )

    def _compared_with(self, *others: ast.expr) -> StringRole:
        if any(map(self.evidence.holds, others)):
            return StringRole(RoleVerdict.YES)
        peers = tuple(slot for other in others for slot in slots_of(self.site, other))
        return replace(_UNCLEAR, peers=(*peers, *keys_of(peers)))

    def _is_tested_beside(self, compare: ast.Compare) -> bool:
        """`kind == "cuda" or kind == "npu"`: this code knows the target already"""
        for node in self.site.place.upwards():
            if not isinstance(node, ast.BoolOp) or compare not in node.values:
                continue
            for other in node.values:
                sides = [other.left, *other.comparators] if isinstance(other, ast.Compare) else []
                if any(isinstance(side, ast.Constant) and side.value == self.target_word for side in sides):
                    return True
        return False

    def _decide_dict(self, node: ast.Dict, child: ast.AST) -> StringRole:
        position = self.evidence.position_in(node.values, child)
        if position is not None:
            key = node.keys[position]
            is_listed = self.site.target.device.word in self.evidence.words_in(node)
            if key is not None and is_backend_of_device(key, child) and is_listed:
                return StringRole(RoleVerdict.NO, ALREADY_THERE)  # as its key
            return self._decide_dict_value(key, child)
        value = node.values[self.evidence.position_in(node.keys, child) or 0]
        if self._is_looked_up(node) or is_backend_of_device(child, value):
            return StringRole(RoleVerdict.YES)
        place = self.site.place
        while place.parent is not node and place.outer is not None:
            place = place.outer
        kept_in = passed_to(Site(self.site.context, node, place.outer or place))
        return StringRole(RoleVerdict.UNCLEAR, DICT_KEY.format(noun=self.vocabulary.noun), keys_of(kept_in))

    def _decide_dict_value(self, key: ast.expr | None, value: ast.AST) -> StringRole:
        if not isinstance(key, ast.Constant):
            return _UNCLEAR
        if self.evidence.fits(str(key.value)) or is_backend_of_device(key, value):
            return StringRole(RoleVerdict.YES)
        return self._into(Member(self.site.context.path, None, text_of(key))) if text_of(key) else _UNCLEAR

    def _is_looked_up(self, node: ast.Dict) -> bool:
        """Whether a dictionary display is indexed on the spot by a value of this sort."""
        for ancestor in self.site.place.upwards():
            if isinstance(ancestor, ast.Subscript) and ancestor.value is node:
                return self.evidence.holds(ancestor.slice)
            if isinstance(ancestor, ast.Call) and isinstance(ancestor.func, ast.Attribute):
                if ancestor.func.value is node and ancestor.args:
                    return self.evidence.holds(ancestor.args[0])
        return False

    def _decide_subscript(self, node: ast.Subscript, child: ast.AST) -> StringRole:
        if last_name(node.value) == "Literal":
            name = _annotated_name(self.site)
            return StringRole(RoleVerdict.YES) if name and self.evidence.fits(name) else _UNCLEAR
        if child is node.value:
            return _UNCLEAR
        return StringRole(RoleVerdict.NO, IS_KEY, keys_of(slots_of(self.site, node.value)))

    def _decide_statement(self, statement: ast.AST) -> StringRole:
        if isinstance(statement, ast.Expr):
            return StringRole(RoleVerdict.NO, IS_PROSE)
        if isinstance(statement, ast.Assign):
            roles = [self._by_target(target) for target in statement.targets]
            certain = next((role for role in roles if role.verdict is RoleVerdict.YES), None)
            return certain or self._into(*(slot for role in roles for slot in role.slots))
        if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
            return self._by_target(statement.target)
        if isinstance(statement, ast.Return):
            return self._by_function()
        if isinstance(statement, ast.MatchValue):
            outer = self.site.place.statement
            subject = outer.subject if isinstance(outer, ast.Match) else None
            role = self._compared_with(subject) if subject is not None else _UNCLEAR
            is_one = role.verdict is RoleVerdict.UNCLEAR and self._is_among_cases(outer)
            return StringRole(RoleVerdict.YES) if is_one else role
        if isinstance(statement, (ast.Raise, ast.Assert)):
            return StringRole(RoleVerdict.NO, IN_MESSAGE)
        return _UNCLEAR

    def _is_among_cases(self, statement: ast.stmt) -> bool:
        """`case "cuda": ... case "cpu": ...`, and no word of another sort"""
        cases = statement.cases if isinstance(statement, ast.Match) else []
        nodes = [node for case in cases for node in ast.walk(case.pattern)]
        words = {text_of(node.value) for node in nodes if isinstance(node, ast.MatchValue)}
        known = self.vocabulary.siblings
        return not known.isdisjoint(words) and all(
            word in known or self.vocabulary.own.match(word) for word in words
        )

    def _by_function(self) -> StringRole:
        """A returned value: the function's name tells, or another return of a value of the same sort."""
        node = self.site.scope.node
        if not isinstance(node, FUNCTIONS):
            return _UNCLEAR
        if self.evidence.fits(node.name):
            return StringRole(RoleVerdict.YES)
        returned = [item.value for item in ast.walk(node) if isinstance(item, ast.Return) and item.value]
        if any(self.evidence.mentions_sibling(value) for value in returned):
            return StringRole(RoleVerdict.YES)
        return self._into(
            ReturnValue(self.site.context.path, node, self.indexes[-1] if self.indexes else None)
        )

    def _by_target(self, target: ast.expr, outer: int = 0) -> StringRole:
        """By what a value is assigned to; `outer`: the lists around it that a loop takes apart."""
        indexes = self.indexes[: len(self.indexes) - outer]
        if isinstance(target, (ast.Tuple, ast.List)) and indexes and indexes[-1] < len(target.elts):
            target = target.elts[indexes[-1]]
        if isinstance(target, ast.Name) and self.evidence.fits(target.id):
            return StringRole(RoleVerdict.YES)
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            if self.evidence.fits(str(target.slice.value)):
                return StringRole(RoleVerdict.YES)
        elif not isinstance(target, ast.Name) and self.evidence.holds(target):
            return StringRole(RoleVerdict.YES)
        return self._into(*target_slots(self.site, target))


def _parameter_of(arguments: ast.arguments, default: ast.AST) -> str:
    """The parameter whose default value or annotation a node is, "" if it is none."""
    for argument, value in with_defaults(arguments):
        if value is default or argument.annotation is default:
            return argument.arg
    parameters = (*arguments.posonlyargs, *arguments.args)
    return next((item.arg for item in parameters if item.annotation is default), "")


def _annotated_name(site: Site[ast.expr]) -> str:
    """The variable or parameter that an annotation belongs to."""
    statement = site.place.statement
    top = site.place.ancestors[0] if site.place.ancestors else site.node
    if isinstance(statement, ast.AnnAssign):
        return last_name(statement.target)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return _parameter_of(statement.args, top) or statement.name
    return ""


def is_message(site: Site[Any]) -> bool:
    """Whether a string is shown to people: an argument of print, of a logger, of an exception."""
    for node in site.place.upwards():
        if isinstance(node, (ast.Subscript, ast.Compare)):
            return False
        if isinstance(node, ast.Call) and called_name(node) != "format":
            return bool(_MESSAGES.match(called_name(node)))
    return isinstance(site.place.statement, (ast.Raise, ast.Assert))
