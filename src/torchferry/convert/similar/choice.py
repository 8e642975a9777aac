"""Which of a vendor's entries fits a call."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from torchferry.convert.similar.signature import (
    Arguments,
    NameOf,
    Parameter,
    UnboundError,
    bind,
    equals,
    is_whole,
    names_in,
    parameters_of,
)
from torchferry.text import Text
from torchferry.vendors.similar import Similar

_NO_PLACE = Text("its argument `{name}` has no place there", "参数 `{name}` 在那里没有对应")


@dataclass(frozen=True)
class Choice:
    """An entry, and the call's arguments by the names that the entry gives them."""

    entry: Similar
    parameters: tuple[Parameter, ...]
    arguments: Arguments


def choose(entries: Iterable[Similar], call: ast.Call, name_of: NameOf) -> Choice | None:
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
                return Choice(entry, parameters, {})
            continue
        if not all(_holds(condition, arguments, parameters, name_of) for condition in entry.when):
            continue
        obstacle = _without_place(entry, arguments, parameters)
        if not obstacle:
            return Choice(entry, parameters, arguments)
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
