"""A call's arguments bound to a signature, and which of a vendor's entries fits the call."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from torchferry.conversion.program.functions import with_defaults
from torchferry.text import Text
from torchferry.vendors.similar import Similar

_STARRED = Text("its arguments are not all written out", "其参数没有全部写明")
_TOO_MANY = Text("it has more positional arguments than are known", "位置参数多于已知的个数")
_UNKNOWN = Text("its argument `{name}` is unknown", "参数 `{name}` 未知")
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
    defaults = {item.arg: default for item, default in with_defaults(arguments)}
    found: list[Parameter] = []
    for item in (*arguments.args, *arguments.kwonlyargs):
        default = defaults.get(item.arg)
        written = ast.get_source_segment(head, default) if default is not None else None
        found.append(Parameter(item.arg, written, item in arguments.kwonlyargs))
    return tuple(found)


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


# Expressions with places for arguments: how they are read, and filled for one call.

_TOKEN = re.compile(r"\[\[|\]\]|\{(\w+)\}")
_OPTION = re.compile(r"\[\[|\]\]")
_DOTTED = re.compile(r"(?<![\w.}\])])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
# What a place must stand between to be an argument of a call, where any expression may stand.
_OPENS_ARGUMENT = re.compile(r"(?:[(,]|[(,]\s*\w+=)\s*\Z")
_CLOSES_ARGUMENT = re.compile(r"\s*[,)]")


@dataclass(frozen=True)
class ArgumentPlace:
    """A place for an argument; as the operand of something, it may need parentheses."""

    name: str
    is_operand: bool
    is_object: bool  # a dot or a bracket follows


Piece = str | ArgumentPlace


@dataclass(frozen=True)
class _Segment:
    pieces: tuple[Piece, ...]
    is_optional: bool

    @property
    def names(self) -> set[str]:
        return {piece.name for piece in self.pieces if isinstance(piece, ArgumentPlace)}


@cache
def _segments(use: str) -> tuple[_Segment, ...]:
    segments: list[_Segment] = []
    pieces: list[Piece] = []
    position = 0
    for match in _TOKEN.finditer(use):
        pieces.append(use[position : match.start()])
        position = match.end()
        if match[1]:
            before, after = (_OPTION.sub("", text) for text in (use[: match.start()], use[match.end() :]))
            is_argument = _OPENS_ARGUMENT.search(before) and _CLOSES_ARGUMENT.match(after)
            pieces.append(ArgumentPlace(match[1], not is_argument, after.startswith((".", "[", "("))))
        else:
            segments.append(_Segment(tuple(pieces), match[0] == "]]"))
            pieces = []
    pieces.append(use[position:])
    return (*segments, _Segment(tuple(pieces), False))


def names_in(use: str) -> set[str]:
    """The arguments that a template speaks of."""
    return set().union(*(segment.names for segment in _segments(use)))


def filled(use: str, given: Collection[str], defaults: Mapping[str, str | None]) -> list[Piece]:
    """The pieces for a call that gives these arguments: optional text decided, other defaults written out."""
    found: list[Piece] = []
    for segment in _segments(use):
        if segment.is_optional and not segment.names <= set(given):
            continue
        for piece in segment.pieces:
            if isinstance(piece, ArgumentPlace) and piece.name not in given:
                found.append(defaults[piece.name] or "")
            elif piece:
                found.append(piece)
    return found


def respelled(use: str, modules: Collection[str], spell: Callable[[str], str]) -> str:
    """A template with the dotted names of these modules written as they can be written in a place."""

    def replace(match: re.Match[str]) -> str:
        return spell(match[0]) if match[0].partition(".")[0] in modules else match[0]

    return _DOTTED.sub(replace, use)


def readable(use: str) -> str:
    """A template as a reader sees it: optional parts and braces written out."""
    return re.sub(r"\[\[|\]\]|[{}]", "", use)


# Which of a vendor's entries fits a call.

_NO_PLACE = Text("its argument `{name}` has no place there", "参数 `{name}` 在那里没有对应")


@dataclass(frozen=True)
class SimilarChoice:
    """An entry, and the call's arguments by the names that the entry gives them."""

    entry: Similar
    parameters: tuple[Parameter, ...]
    arguments: Arguments


def choose(entries: Iterable[Similar], call: ast.Call, name_of: NameOf) -> SimilarChoice | None:
    """The first entry whose conditions hold; None: this use of the name is fine as it is. Raises UnboundError."""
    refusal: UnboundError | None = None
    for entry in entries:
        parameters = parameters_of(entry.signature)
        try:
            arguments = bind(call, parameters)
        except UnboundError as reason:
            if entry.use:
                refusal = refusal or reason
            elif not entry.when:
                return SimilarChoice(entry, parameters, {})
            continue
        if not all(_holds(condition, arguments, parameters, name_of) for condition in entry.when):
            continue
        obstacle = _without_place(entry, arguments, parameters)
        if not obstacle:
            return SimilarChoice(entry, parameters, arguments)
        refusal = refusal or UnboundError(_NO_PLACE.format(name=obstacle))
    if refusal is not None:
        raise refusal
    return None


def _holds(condition: str, arguments: Arguments, parameters: tuple[Parameter, ...], name_of: NameOf) -> bool:
    name, equal, value = condition.partition("=")
    name, _, sort = name.partition(":")
    default = next(parameter.default for parameter in parameters if parameter.name == name)
    node = arguments.get(name)
    if equal:
        return equals(node, value, name_of) if node is not None else default == value
    if node is None:
        return False
    if sort:
        return is_whole(node)
    return default is None or not equals(node, default)


def _without_place(entry: Similar, arguments: Arguments, parameters: tuple[Parameter, ...]) -> str:
    """An argument that the equivalent can't take and that is not at its default; "" if there is none."""
    if not entry.use:
        return ""
    placed = set(entry.takes) if entry.keeps_arguments else names_in(entry.use)
    placed.update(
        entry.ignored, (condition.partition("=")[0] for condition in entry.when if "=" in condition)
    )
    for parameter in parameters:
        node = arguments.get(parameter.name)
        if node is not None and parameter.name not in placed:
            if parameter.default is None or not equals(node, parameter.default):
                return parameter.name
    return ""
