"""Whether a call made what is not finite, only passed it on, or was meant to make it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from torchferry.accuracy.model import Statistics
from torchferry.accuracy.overflow.calls import CheckedCall, is_number
from torchferry.accuracy.overflow.figures import fetched
from torchferry.accuracy.overflow.model import HALF_LIMIT, Figures, Kind
from torchferry.observe.operators import base_name
from torchferry.observe.where import OPTIMIZER

LOWEST = "lowest"  # a mask of a dtype's lowest number was added
GIVEN = "given"  # the first tensor with NaN that was met was made by none of the operators seen
TABLE = "table"  # the logarithm of 0 in a table or mask that no gradient flows through
# Where these are infinite though their inputs are finite: tables of positions begin with log(0), masks are made of
# log(0) and log(1), and PyTorch draws truncated normal numbers with erfinv(-1), which it cuts off afterwards.
_POLES = {"log": (0.0,), "log2": (0.0,), "log10": (0.0,), "log1p": (-1.0,), "erfinv": (-1.0, 1.0)}
_ADDING = frozenset({"add", "sub"})
_FILLING = ("full", "fill", "where", "pad", "scalar_tensor", "nan_to_num")


def kind_of(call: CheckedCall, inputs: Iterable[Figures], outputs: Iterable[Figures]) -> Kind | None:
    """What it made of finite inputs; None: nothing, or it had it from its inputs.

    NaN from infinities is made here: a softmax of a row that is masked as a whole, infinity minus infinity.
    """
    found = [each.statistics for each in outputs if each.statistics is not None]
    given = [each.statistics for each in inputs if each.statistics is not None]
    numbers = list(call.numbers())
    has_nan = any(each.nans for each in given) or any(map(math.isnan, numbers))
    if has_nan:
        return None
    if any(each.nans for each in found):
        return Kind.NAN
    has_infinity = any(each.infinities for each in given) or any(map(math.isinf, numbers))
    if any(each.infinities for each in found) and not has_infinity:
        return Kind.INFINITE
    return None


def is_given_nan(call: CheckedCall, inputs: Iterable[Figures]) -> bool:
    """Whether there is NaN in what it was given to compute with."""
    if any(map(math.isnan, call.numbers())):
        return not is_filling(call)
    return any(each.statistics is not None and each.statistics.nans for each in inputs)


def is_filling(call: CheckedCall) -> bool:
    """Whether it writes a number that was chosen, as `full` and `masked_fill` do."""
    return any(word in base_name(call.plan.func) for word in _FILLING)


def exceeds_half(call: CheckedCall, inputs: Iterable[Figures], outputs: Iterable[Figures]) -> bool:
    """Whether it made values that float16 can't hold of values that it can. Optimizers keep their own precision."""
    if call.site.phase == OPTIMIZER or not any(map(_is_beyond_half, outputs)):
        return False
    return not any(map(_is_beyond_half, inputs)) and not any(
        abs(each) > HALF_LIMIT for each in call.numbers()
    )


def _is_beyond_half(figures: Figures) -> bool:
    statistics = figures.statistics
    return statistics is not None and largest(statistics) > HALF_LIMIT


def largest(statistics: Statistics) -> float:
    """The largest magnitude among finite elements; 0 where there are none."""
    return statistics.largest if math.isfinite(statistics.largest) else 0.0


def why_intended(call: CheckedCall) -> str:
    """Why its infinities are taken for intended; "": they are not."""
    base = base_name(call.plan.func).rstrip("_")
    if base in _ADDING:
        return LOWEST if _adds_lowest(call) else ""
    if base in _POLES:
        return TABLE if _is_at_poles(call, _POLES[base]) else ""
    return ""


def _adds_lowest(call: CheckedCall) -> bool:
    """`scores + mask`, where the mask holds the dtype's lowest number: what lies below it becomes -inf."""
    (_, output), *others = call.outputs
    inputs = [fetched(tensor) for _, tensor in call.read_inputs() if is_number(tensor)]
    if others or len(inputs) != 2:
        return False
    result = fetched(output)
    lowest = torch.finfo(result.dtype).min if result.is_floating_point() else -math.inf
    is_masked = (inputs[0] <= lowest) | (inputs[1] <= lowest)
    is_infinite = result.isinf()
    return bool((result[is_infinite] < 0).all()) and bool(is_masked.expand_as(result)[is_infinite].all())


def _is_at_poles(call: CheckedCall, poles: tuple[float, ...]) -> bool:
    inputs = [tensor for _, tensor in call.read_inputs()]
    if len(inputs) != 1 or inputs[0].requires_grad or any(each.requires_grad for _, each in call.outputs):
        return False
    values, result = fetched(inputs[0]), fetched(call.outputs[0][1])
    at_pole = torch.zeros(values.shape, dtype=torch.bool)
    for pole in poles:
        at_pole |= values == pole
    return bool(at_pole[result.isinf()].all())
