"""A number that a kernel has taken a little wrongly, in few digits: no element shows it, but all of them lean one way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from torchferry.accuracy.replay.arguments import CannotExecuteError
from torchferry.accuracy.replay.errors import flat
from torchferry.accuracy.replay.execution import execute_doubled
from torchferry.accuracy.replay.margins import digits_of
from torchferry.accuracy.replay.operators import base_name
from torchferry.accuracy.replay.references import Reference, attempt
from torchferry.text import Text

_STEP = 2.0**-8  # by which the number is changed, to see how results go with it
_SURE = 20.0  # standard deviations: elements of a row share what was rounded on the way
_FEWEST = 64  # elements of which that can be told
_OWN = 4.0  # times as far as the CPU's own kernel

_AS_IF = Text(
    "no element shows it, but all of them together lean as if {name} were {value:.6g}, not {given:.6g}",
    "单个元素看不出，但全部元素整体上如同 {name} 为 {value:.6g}，而不是 {given:.6g}",
)


@dataclass(frozen=True)
class Leaning:
    """By how much of itself a number seems to be another one, and how sure that is."""

    share: float
    deviation: float


def leaning(reference: Reference, output: int, result: Callable[[], torch.Tensor]) -> Text | None:
    """What a result with few digits leans to, if that is more than a number rounded to its dtype would explain."""
    number = _number(reference)
    right = reference.right[output]
    digits = digits_of(reference.call.outputs[output].dtype)
    if number is None or right is None or digits is None or right.numel() < _FEWEST:
        return None
    name, given = number
    least = 2.0**-(digits.digits)
    direction = _direction(reference, output, name, given)
    if direction is None:
        return None
    found = _leaning(result(), right, direction)
    if found is None or abs(found.share) <= max(least, _SURE * found.deviation):
        return None
    host = reference.of_host()[output]
    own = _leaning(host, right, direction) if host is not None and host.shape == right.shape else None
    if own is not None and abs(found.share) <= _OWN * abs(own.share):
        return None
    return _AS_IF.format(name=name, value=given * (1.0 + found.share), given=given)


def _number(reference: Reference) -> tuple[str, float] | None:
    """The number that is asked about: by what attention multiplies its products."""
    of = _NUMBERS.get(next((part for part in _NUMBERS if part in base_name(reference.call.operator)), ""))
    return of(reference) if of is not None else None


def _scale(reference: Reference) -> tuple[str, float] | None:
    given: Any = dict(reference.call.arguments).get("scale")
    if isinstance(given, float):
        return "scale", given
    query = next(
        (
            tensor
            for record, tensor in zip(reference.call.inputs, reference.inputs, strict=True)
            if record.name == "input/query"
        ),
        None,
    )
    return ("scale", 1.0 / math.sqrt(query.shape[-1])) if query is not None and given is None else None


_NUMBERS: dict[str, Callable[[Reference], tuple[str, float] | None]] = {"attention": _scale}


def _direction(reference: Reference, output: int, name: str, given: float) -> torch.Tensor | None:
    """How the right result goes with the number, per its own size."""
    call = reference.call
    changed = replace(call, arguments=tuple({**dict(call.arguments), name: given * (1.0 + _STEP)}.items()))
    try:
        found = attempt(lambda: execute_doubled(changed, reference.inputs))[output]
    except CannotExecuteError:
        return None
    right = reference.right[output]
    if found is None or right is None or found.shape != right.shape:
        return None
    return (found - right) / _STEP


def _leaning(result: torch.Tensor, right: torch.Tensor, direction: torch.Tensor) -> Leaning | None:
    """How much of a direction is in the errors; what else is in them says how sure that is."""
    errors, along = flat(result).double() - flat(right).double(), flat(direction).double()
    finite = errors.isfinite() & along.isfinite()
    errors, along = errors[finite], along[finite]
    length = float(along @ along)
    if not length or errors.numel() < _FEWEST:
        return None
    share = float(errors @ along) / length
    rest = errors - share * along
    return Leaning(share, math.sqrt(float(rest @ rest) / errors.numel() / length))
