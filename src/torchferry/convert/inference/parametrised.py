"""Values that a decorator hands to the parameters of a test: pytest's parametrize, parameterized.expand, fixtures."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from torchferry.convert.inference.slots import FUNCTIONS, AnySite, Member, Result, Slot, Variable, text_of
from torchferry.source.names import called_name, last_name

_BY_NAME = frozenset({"parametrize", "mark_parametrize", "parameterized_class"})
_BY_POSITION = frozenset({"expand", "parameterized"})


@dataclass(frozen=True)
class Given:
    """The parameter that a value becomes; "" if that can't be told, and where it is kept."""

    name: str
    slots: tuple[Slot, ...] = ()


def handed_to(site: AnySite, call: ast.Call, value: ast.AST, indexes: Sequence[int]) -> Given | None:
    """What becomes of (an element of) an argument of such a decorator; None if the call is none.

    `indexes` say which element of a row, and which row of the list, the value is.
    """
    keyword = next((item.arg for item in call.keywords if value in (item, item.value)), "")
    name = called_name(call)
    column = indexes[-2] if len(indexes) > 1 else None
    if name in _BY_NAME and (keyword == "argvalues" or value in call.args[1:2]):
        names = _names(call)
        chosen = names[0] if len(names) == 1 else _element(names, column)
        return _given(site, chosen)
    if name in _BY_POSITION and value in call.args[:1] and _is_parameterized(call.func):
        return _given(site, _element(_parameters(site.place.statement), column or 0))
    statement = site.place.statement
    if name == "fixture" and keyword == "params" and isinstance(statement, FUNCTIONS):
        path = site.context.path
        return Given(statement.name, (Member(path, None, "param"), Result(path, statement)))
    return None


def _names(call: ast.Call) -> list[str]:
    """The parameters that a decorator names: "a", "a, b", ("a", "b")."""
    node = next((item.value for item in call.keywords if item.arg == "argnames"), None)
    node = node or (call.args[0] if call.args else None)
    if isinstance(node, (ast.Tuple, ast.List)):
        return [text_of(item) for item in node.elts]
    return [part.strip() for part in text_of(node).split(",")] if node is not None else []


def _element(names: Sequence[str], index: int | None) -> str:
    return names[index] if index is not None and index < len(names) else ""


def _is_parameterized(function: ast.expr) -> bool:
    """parameterized(...), parameterized.expand(...)"""
    return "parameterized" in (last_name(function), last_name(getattr(function, "value", None)))


def _parameters(statement: ast.stmt) -> list[str]:
    """The parameters of a function but its object."""
    if not isinstance(statement, FUNCTIONS):
        return []
    names = [item.arg for item in (*statement.args.posonlyargs, *statement.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _given(site: AnySite, name: str) -> Given:
    statement, path = site.place.statement, site.context.path
    if not name:
        return Given("")
    if isinstance(statement, ast.ClassDef):
        methods = [item for item in statement.body if isinstance(item, FUNCTIONS)]
        slots: list[Slot] = [Variable(path, item, name) for item in methods if name in _parameters(item)]
        return Given(name, (*slots, Member(path, statement, name)))
    return Given(name, (Variable(path, statement, name),) if isinstance(statement, FUNCTIONS) else ())
