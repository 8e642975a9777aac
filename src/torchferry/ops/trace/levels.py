"""Which of the nested operators count: those that the dispatcher hands to a backend, below autograd and autocast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from torchferry.operators.equivalents import CHOOSE_BY_DEVICE
from torchferry.operators.known import operator_facts
from torchferry.operators.native_functions import OperatorFacts
from torchferry.operators.schemas import Schema, schemas
from torchferry.ops.trace.calls import Call
from torchferry.ops.trace.signatures import Signatures

_IMPLICIT = "CompositeImplicitAutograd"
_EXPLICIT = "CompositeExplicitAutograd"
_CAST = "aten::to"


class Level(Enum):
    """How an operator counts."""

    THROUGH = "through"  # it only calls others, above autograd: they count
    EXPANDED = "expanded"  # a formula below autograd: it is listed, and those that it calls
    WHOLE = "whole"  # it has a kernel: what that calls is its own affair


class Counted(NamedTuple):
    """A call that counts."""

    call: Call
    inside: str  # the operator whose formula made the call
    expanded: bool


def counted(roots: Iterable[Call], signatures: Signatures, device: str) -> Iterator[Counted]:
    """The calls that count, in the order in which they began."""
    waiting = [(call, "") for call in reversed(list(roots))]
    while waiting:
        call, inside = waiting.pop()
        schema = signatures.schema_of(call.operator, call.event.inputs)
        level = _level(call, schema, signatures, device)
        if level is not Level.THROUGH:
            yield Counted(call, inside, level is Level.EXPANDED)
        if level is not Level.WHOLE:
            name = f"aten::{schema.name}" if schema else call.operator
            within = name if level is Level.EXPANDED else inside
            waiting += [(child, within) for child in reversed(call.children)]


def _level(call: Call, schema: Schema | None, signatures: Signatures, device: str) -> Level:
    if _is_autocast(call, schema, signatures):
        return Level.THROUGH
    level = level_of(call.operator, schema, device)
    if level is Level.THROUGH and call.work:
        return Level.WHOLE  # an adapter has put a kernel of its own in place of the formula
    if level is Level.EXPANDED and not call.children:
        return Level.WHOLE
    return level


def _is_autocast(call: Call, schema: Schema | None, signatures: Signatures) -> bool:
    """Autocast converts the arguments, then calls the operator again. Formulas call other overloads: sum, sum.dim."""
    again = [child for child in call.children if child.operator == call.operator]
    if len(again) != 1 or any(child.operator not in (call.operator, _CAST) for child in call.children):
        return False
    return signatures.schema_of(call.operator, again[0].event.inputs) == schema


@cache
def level_of(operator: str, schema: Schema | None, device: str) -> Level:
    """How an operator counts that calls others."""
    base = operator.removeprefix("aten::")
    overloads = (schema,) if schema else schemas().get(base, ())
    known = operator_facts()
    facts = [
        known[each.name] for each in overloads if each.name in known and (schema or not each.writes_to_given)
    ]
    if not operator.startswith("aten::") or not facts:
        return Level.WHOLE
    if all(_IMPLICIT in fact.kernels for fact in facts):
        return Level.THROUGH
    if operator in CHOOSE_BY_DEVICE or all(each.is_view for each in overloads):
        return Level.WHOLE
    return Level.EXPANDED if all(_is_formula(fact, device) for fact in facts) else Level.WHOLE


def _is_formula(fact: OperatorFacts, device: str) -> bool:
    has_kernel = "CPU" in fact.kernels or device.upper() in fact.kernels or bool(fact.structured_delegate)
    return not has_kernel and any(key.startswith(_EXPLICIT) for key in fact.kernels)
