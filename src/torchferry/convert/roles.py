"""What a string is for, judged by where it stands: a device, certainly not one, or nobody can tell.

The value alone says little: 'cuda' may be a device type, a checkpoint key, an attribute's name or a word of a
message. Its place says more. Every verdict comes with the reason that the report shows.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from torchferry.convert.evidence import (
    CONTAINERS,
    TESTS_OF_TEXT,
    Evidence,
    Verdict,
    Vocabulary,
)
from torchferry.convert.site import Site
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import Scope
from torchferry.text import Text


@dataclass(frozen=True)
class Role:
    """A verdict and why."""

    verdict: Verdict
    reason: Text = Text("", "")

    @property
    def is_prose(self) -> bool:
        """Whether the string is for people to read: nothing to say about it."""
        return self.reason in (_IN_MESSAGE, _IS_PROSE)


_MESSAGES = re.compile(
    r"^(print|warn|warning|info|debug|error|critical|exception|log|log_once|echo|write|fail|skip|xfail|secho|"
    r"print_rank_0|rank_zero_\w+|log_dist|\w+(Error|Exception|Warning))$"
)
_OPTION_FUNCTIONS = re.compile(
    r"^(add_argument|option|argument|Option|Argument|Field|field|attrib|ib|DEFINE_\w+)$"
)
_GETTERS = frozenset({"get", "setdefault", "pop", "getattr", "getenv", "get_setting", "get_option"})
_COLLECTORS = frozenset({"append", "add", "extend", "insert", "remove", "discard"})
_PATHS = frozenset({"join", "joinpath", "Path", "exists", "isfile", "isdir", "open", "glob"})
_TRANSPARENT_CALLS = frozenset(
    {"str", "list", "tuple", "set", "frozenset", "sorted", "cycle", "repeat", "zip", "iter"}
)
_TRANSPARENT = (
    ast.IfExp,
    ast.BoolOp,
    ast.Starred,
    ast.NamedExpr,
    ast.Await,
    ast.Lambda,
    ast.FormattedValue,
    ast.JoinedStr,
)
_LEFT = Text("left as it is: {reason}", "保持不变：{reason}")
_IN_MESSAGE = Text("part of a message", "是提示信息的一部分")
_IS_KEY = Text("a key: renaming it would break what was stored under it", "是键名：改名会使已保存的内容失效")
_IS_ATTRIBUTE = Text("the name of an attribute", "是属性名")
_IS_PATH = Text("part of a file name", "是文件名的一部分")
_ALREADY_THERE = Text("the target is listed beside it already", "目标设备已列在旁边")
_IS_PROSE = Text("text on its own", "是独立的文本")
_NO_CLUE = Text("nothing around it says what it is for", "上下文无法说明其用途")
_DICT_KEY = Text(
    "a dictionary key: rename it only if it is looked up by {noun}", "是字典键：仅当按{noun}查找时才应改名"
)


# A string that deep in an expression says nothing by its place.
_HIGHEST = 40


class RoleFinder:
    """Finds the role of one string; made anew for each site."""

    def __init__(self, site: Site[ast.expr], vocabulary: Vocabulary) -> None:
        self.site = site
        self.vocabulary = vocabulary
        self.evidence = Evidence(site, vocabulary)
        self.target_word = vocabulary.target_word(site.target)
        self.unclear = Role(Verdict.UNCLEAR, _NO_CLUE)

    def find(self) -> Role:
        """Climb from the string to the first node that decides."""
        child: ast.AST = self.site.node
        beside_sibling = False
        for parent in islice(self.site.place.upwards(), _HIGHEST):
            if self._lists_target(parent):
                return Role(Verdict.NO, _ALREADY_THERE)
            beside_sibling = beside_sibling or self._has_sibling(parent, child)
            if not self._is_transparent(parent, child):
                role = self._decide(parent, child)
                return self._with_sibling(role, beside_sibling)
            child = parent
        return self._with_sibling(self._decide_unit(child), beside_sibling)

    def _lists_target(self, parent: ast.AST) -> bool:
        """Whether the target's own value stands in the same list: this code knows the target already."""
        return isinstance(parent, (ast.Dict, *CONTAINERS)) and self.target_word in self.evidence.words_in(
            parent
        )

    def _with_sibling(self, role: Role, beside_sibling: bool) -> Role:
        # 'cuda' next to 'cpu' is a device, unless it is known to be something else.
        return Role(Verdict.YES) if beside_sibling and role.verdict is Verdict.UNCLEAR else role

    def _is_transparent(self, parent: ast.AST, child: ast.AST) -> bool:
        if isinstance(parent, ast.IfExp):
            return child is not parent.test
        if isinstance(parent, (*_TRANSPARENT, *CONTAINERS)):
            return True
        if isinstance(parent, ast.BinOp):
            return isinstance(parent.op, (ast.Add, ast.Mod, ast.Mult))
        if isinstance(parent, ast.Attribute):  # 'cuda:{}'.format
            return parent.attr in ("format", "lower", "strip")
        if isinstance(parent, ast.Call):
            if child is parent.func:
                return True
            return isinstance(parent.func, ast.Name) and parent.func.id in _TRANSPARENT_CALLS
        return False

    def _has_sibling(self, parent: ast.AST, child: ast.AST) -> bool:
        others: list[ast.expr] = []
        if isinstance(parent, ast.IfExp):
            others = [parent.body, parent.orelse]
        elif isinstance(parent, CONTAINERS):
            words = self.evidence.words_in(parent)
            return not self.vocabulary.siblings.isdisjoint(words) or self._follows_option(parent.elts, child)
        elif isinstance(parent, ast.BoolOp):
            others = parent.values
        return any(other is not child and self.evidence.mentions_sibling(other) for other in others)

    def _follows_option(self, elements: list[ast.expr], child: ast.AST) -> bool:
        """["--device", "cuda"]"""
        position = self.evidence.position_in(elements, child)
        before = elements[position - 1] if position else None
        return (
            isinstance(before, ast.Constant)
            and str(before.value).startswith("-")
            and self.evidence.key_fits(before)
        )

    def _decide(self, parent: ast.AST, child: ast.AST) -> Role:
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
            return self._by_target(parent.target)
        if isinstance(parent, ast.arguments):
            return Role(Verdict.YES) if self.evidence.fits(_parameter_of(parent, child)) else self.unclear
        if isinstance(parent, (ast.stmt, ast.MatchValue)):
            return self._decide_statement(parent)
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
            return Role(Verdict.NO, _IS_PATH)
        return self.unclear

    def _decide_unit(self, node: ast.AST) -> Role:
        """The string stands alone in its unit: a default, a loop's sequence, a test, an annotation."""
        statement = self.site.place.statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = _parameter_of(statement.args, node)
            return self._by_name(name, _function_scope(self.site, statement)) if name else self.unclear
        if isinstance(statement, (ast.For, ast.AsyncFor)) and node is statement.iter:
            return self._by_target(statement.target)
        return self.unclear

    def _decide_keyword(self, keyword: ast.keyword) -> Role:
        name = keyword.arg or ""
        call = self._call_of(keyword)
        function = called_name(call) if call else ""
        if name in ("help", "description", "desc", "metavar", "msg", "message"):
            return Role(Verdict.NO, _IN_MESSAGE)
        if _OPTION_FUNCTIONS.match(function) and name in (
            "default",
            "choices",
            "const",
            "type",
            "default_factory",
        ):
            return self._decide_option(call)
        if self.evidence.fits(name):
            return Role(Verdict.YES)
        if call is not None and name == "type" and self.site.qualified(call.func) == "torch.device":
            return Role(Verdict.YES)
        return self.unclear

    def _call_of(self, keyword: ast.keyword) -> ast.Call | None:
        for node in self.site.place.upwards():
            if isinstance(node, ast.Call) and keyword in node.keywords:
                return node
        return None

    def _decide_option(self, call: ast.Call | None) -> Role:
        """A default or the choices of a command-line option or of a field."""
        if call is None:
            return self.unclear
        names = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        if any(
            isinstance(name, str) and self.evidence.fits(name.lstrip("-").replace("-", "_")) for name in names
        ):
            return Role(Verdict.YES)
        for keyword in call.keywords:
            if keyword.arg == "choices" and isinstance(keyword.value, CONTAINERS):
                if any(self.evidence.mentions_sibling(element) for element in keyword.value.elts):
                    return Role(Verdict.YES)
            if (
                keyword.arg == "dest"
                and isinstance(keyword.value, ast.Constant)
                and self.evidence.fits(str(keyword.value.value))
            ):
                return Role(Verdict.YES)
        statement = self.site.place.statement
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return self._decide_statement(statement)
        return self.unclear

    def _decide_argument(self, call: ast.Call, child: ast.AST) -> Role:
        position = next((index for index, item in enumerate(call.args) if item is child), -1)
        name = called_name(call)
        if _MESSAGES.match(name):
            return Role(Verdict.NO, _IN_MESSAGE)
        if self.evidence.is_known_argument(call, name, position):
            return Role(Verdict.YES)
        if position > 0 and _OPTION_FUNCTIONS.match(name):
            return self._decide_option(call)
        if name in ("getattr", "hasattr", "setattr", "delattr") and position == 1:
            return Role(Verdict.NO, _IS_ATTRIBUTE)
        if self.evidence.fits(name) and position >= 0:
            return Role(Verdict.YES)  # to_device(x, "cuda")
        if name in _PATHS:
            return Role(Verdict.NO, _IS_PATH)
        if name in _GETTERS and call.args:
            return self._decide_getter(call, position)
        if isinstance(call.func, ast.Attribute) and (name in TESTS_OF_TEXT or name in _COLLECTORS):
            return Role(Verdict.YES) if self.evidence.holds(call.func.value) else self.unclear
        if name in ("parametrize", "mark_parametrize") and isinstance(call.args[0], ast.Constant):
            return Role(Verdict.YES) if self.evidence.fits(str(call.args[0].value)) else self.unclear
        return self._decide_own_function(call, position)

    def _decide_getter(self, call: ast.Call, position: int) -> Role:
        """`d.get('device', 'cuda')`: the default has the sort of the key; a key stays a key."""
        key_position = 1 if called_name(call) == "getattr" else 0
        if position == key_position:
            return Role(Verdict.NO, _IS_KEY)
        key = call.args[key_position] if len(call.args) > key_position else None
        if isinstance(key, ast.Constant) and self.evidence.fits(str(key.value)):
            return Role(Verdict.YES)
        return Role(self.vocabulary.default, _NO_CLUE)

    def _decide_own_function(self, call: ast.Call, position: int) -> Role:
        """A function of this module: its parameter's name tells."""
        if isinstance(call.func, ast.Name) and position >= 0:
            for scope in self.site.module.scopes.scopes:
                node = scope.node
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == call.func.id:
                    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
                    if position < len(names):
                        return self._by_name(names[position], scope)
        return Role(self.vocabulary.default, _NO_CLUE)

    def _decide_comparison(self, compare: ast.Compare, child: ast.AST) -> Role:
        if self._is_tested_beside(compare):
            return Role(Verdict.NO, _ALREADY_THERE)
        others = [side for side in (compare.left, *compare.comparators) if side is not child]
        if any(self.evidence.holds(other) for other in others):
            return Role(Verdict.YES)
        return self.unclear

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

    def _decide_dict(self, node: ast.Dict, child: ast.AST) -> Role:
        position = self.evidence.position_in(node.values, child)
        if position is not None:
            return self._decide_dict_value(node.keys[position], child)
        value = node.values[self.evidence.position_in(node.keys, child) or 0]
        if self._is_looked_up(node) or _is_backend_of_device(child, value):
            return Role(Verdict.YES)
        return Role(Verdict.UNCLEAR, _DICT_KEY.format(noun=self.vocabulary.noun))

    def _decide_dict_value(self, key: ast.expr | None, value: ast.AST) -> Role:
        if not isinstance(key, ast.Constant):
            return self.unclear
        fits = self.evidence.fits(str(key.value)) or _is_backend_of_device(key, value)
        return Role(Verdict.YES) if fits else self.unclear

    def _is_looked_up(self, node: ast.Dict) -> bool:
        """Whether a dictionary display is indexed on the spot by a value of this sort."""
        for ancestor in self.site.place.upwards():
            if isinstance(ancestor, ast.Subscript) and ancestor.value is node:
                return self.evidence.holds(ancestor.slice)
            if isinstance(ancestor, ast.Call) and isinstance(ancestor.func, ast.Attribute):
                if ancestor.func.value is node and ancestor.args:
                    return self.evidence.holds(ancestor.args[0])
        return False

    def _decide_subscript(self, node: ast.Subscript, child: ast.AST) -> Role:
        if last_name(node.value) == "Literal":
            name = _annotated_name(self.site)
            return Role(Verdict.YES) if name and self.evidence.fits(name) else self.unclear
        return Role(Verdict.NO, _IS_KEY)

    def _decide_statement(self, statement: ast.AST) -> Role:
        if isinstance(statement, ast.Expr):
            return Role(Verdict.NO, _IS_PROSE)
        if isinstance(statement, ast.Assign):
            roles = [self._by_target(target) for target in statement.targets]
            return next((role for role in roles if role.verdict is Verdict.YES), roles[0])
        if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
            return self._by_target(statement.target)
        if isinstance(statement, ast.Return):
            return self._by_function()
        if isinstance(statement, ast.MatchValue):
            outer = self.site.place.statement
            subject = outer.subject if isinstance(outer, ast.Match) else None
            return Role(Verdict.YES) if subject is not None and self.evidence.holds(subject) else self.unclear
        if isinstance(statement, (ast.Raise, ast.Assert)):
            return Role(Verdict.NO, _IN_MESSAGE)
        return self.unclear

    def _by_function(self) -> Role:
        """A returned value: the function's name tells, or another return of a value of the same sort."""
        node = self.site.scope.node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if self.evidence.fits(node.name):
                return Role(Verdict.YES)
            returned = [item.value for item in ast.walk(node) if isinstance(item, ast.Return) and item.value]
            if any(self.evidence.mentions_sibling(value) for value in returned):
                return Role(Verdict.YES)
        return self.unclear

    def _by_target(self, target: ast.expr) -> Role:
        if isinstance(target, ast.Name):
            return self._by_name(target.id, self.site.scope)
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            return Role(Verdict.YES) if self.evidence.fits(str(target.slice.value)) else self.unclear
        return Role(Verdict.YES) if self.evidence.holds(target) else self.unclear

    def _by_name(self, name: str, scope: Scope | None) -> Role:
        """A variable: by its name, else by what is done with it in its scope."""
        if self.evidence.fits(name) or (scope is not None and self.evidence.flows_into_place(name, scope)):
            return Role(Verdict.YES)
        return self.unclear


def _is_backend_of_device(key: ast.AST, value: ast.AST) -> bool:
    """{"cuda": "nccl", "cpu": "gloo"}: which backend a device type uses."""
    return (
        isinstance(key, ast.Constant)
        and key.value == "cuda"
        and isinstance(value, ast.Constant)
        and value.value == "nccl"
    )


def _parameter_of(arguments: ast.arguments, default: ast.AST) -> str:
    """The parameter whose default value or annotation a node is, "" if it is none."""
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for argument, value in [
        *zip(with_default, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]:
        if value is default or argument.annotation is default:
            return argument.arg
    return next((argument.arg for argument in positional if argument.annotation is default), "")


def _function_scope(site: Site[ast.expr], node: ast.AST) -> Scope | None:
    return next((scope for scope in site.module.scopes.scopes if scope.node is node), None)


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


def left_because(role: Role) -> Text:
    """The remark about a string that stays."""
    return _LEFT.format(reason=role.reason)


def role_of(site: Site[Any], vocabulary: Vocabulary) -> Role:
    """What the string at a site is for."""
    return RoleFinder(site, vocabulary).find()
