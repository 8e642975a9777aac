"""The arguments of a call by name, as the signature of what is called has them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from torchferry.text import Text

_STARRED = Text("its arguments are not all written out", "其参数没有全部写明")
_TOO_MANY = Text("it has more positional arguments than are known", "位置参数多于已知的个数")
_UNKNOWN = Text("its argument `{name}` is not known", "参数 `{name}` 未知")
_MISSING = Text("its argument `{name}` is missing", "缺少参数 `{name}`")


class UnboundError(Exception):
    """A call whose arguments can't be told apart; says why."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason.en)
        self.reason = reason


@dataclass(frozen=True)
class Parameter:
    """One parameter of a signature."""

    name: str
    default: str | None  # as it is written; None: it must be given
    by_keyword_only: bool = False


NameOf = Callable[[ast.expr], str]  # the dotted name of an expression, "" if it has none
Arguments = Mapping[str, ast.expr]  # what a call gives, by name, in the order in which it is written


@cache
def parameters_of(signature: str) -> tuple[Parameter, ...]:
    """The parameters of a signature such as "q, k, *, causal=False"."""
    head = f"lambda {signature}: 0"
    parsed = ast.parse(head, mode="eval").body
    assert isinstance(parsed, ast.Lambda)
    arguments = parsed.args
    without = len(arguments.args) - len(arguments.defaults)
    found = [
        Parameter(
            argument.arg, None if index < without else _written(head, arguments.defaults[index - without])
        )
        for index, argument in enumerate(arguments.args)
    ]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(argument.arg, _written(head, default) if default else None, True))
    return tuple(found)


def _written(text: str, node: ast.expr) -> str:
    return ast.get_source_segment(text, node) or ""


def bind(call: ast.Call, parameters: tuple[Parameter, ...]) -> Arguments:
    """The call's arguments by name; raises UnboundError if that is not certain."""
    if any(isinstance(node, ast.Starred) for node in call.args) or any(k.arg is None for k in call.keywords):
        raise UnboundError(_STARRED)
    positional = [parameter.name for parameter in parameters if not parameter.by_keyword_only]
    if len(call.args) > len(positional):
        raise UnboundError(_TOO_MANY)
    bound = dict(zip(positional, call.args, strict=False))
    names = {parameter.name for parameter in parameters}
    for keyword in call.keywords:
        if keyword.arg not in names or keyword.arg in bound:
            raise UnboundError(_UNKNOWN.format(name=keyword.arg))
        bound[keyword.arg] = keyword.value
    for parameter in parameters:
        if parameter.default is None and parameter.name not in bound:
            raise UnboundError(_MISSING.format(name=parameter.name))
    return bound


def equals(node: ast.expr, text: str, name_of: NameOf = lambda _: "") -> bool:
    """Whether an expression is the literal that a text writes, or the call without arguments (`torch.a.B()`)."""
    if text.endswith("()"):
        is_bare = isinstance(node, ast.Call) and not node.args and not node.keywords
        return is_bare and name_of(node.func) == text.removesuffix("()")  # type: ignore[attr-defined]
    try:
        one, other = ast.literal_eval(node), ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def is_whole(node: ast.expr) -> bool:
    """Whether an expression is a literal number without fraction."""
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
