"""Rows of `ferry watch` whose differences say nothing: rounding that was made large, and what follows from it.

The gradient of a bias before a batch norm is zero but for rounding, so that no two devices agree on it, and an optimizer
that divides by its size makes full steps of it; the batch norm then takes the difference out again. Such rows must not
hide where two runs really part. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from torchferry.accuracy.compare.distances import distance_of
from torchferry.accuracy.compare.limits import rounding, single_precision
from torchferry.accuracy.compare.model import Pair
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.text import Text

GRADIENT, LOSS, GRADIENT_NORM, BUFFER = "gradient", "loss", "gradient_norm", "buffer"
_FOLLOWING = ("update", "parameter")
_FAINT = 1e-3  # of the largest gradient of the step
_WRONG_BUFFER = 0.05  # a difference that is no matter of a bias before a batch norm

FAINT = Text(
    "its gradient is so small beside the others that it is rounding alone",
    "其梯度与其他梯度相比极小，只是舍入误差",
)
HARMLESS = Text(
    "it has no effect: loss and gradients of this step are as they should be",
    "没有影响：这一步的损失和梯度均正常",
)


def is_watched(call: Call) -> bool:
    """Whether a call is a row of `ferry watch`; operators have a library's name before theirs."""
    return "::" not in call.operator


def watched_limit(tensor: TensorRecord) -> float:
    """What is normal; totals of a step are kept in double precision, but are no better than what was added up."""
    return max(rounding([tensor]), single_precision())


def with_reasons(pairs: Iterable[Pair]) -> Iterator[tuple[Pair, Text | None]]:
    """The pairs, each with why it is to be left alone, if it is. A step of a watched run is looked at whole."""
    for (is_row, _), group in groupby(pairs, key=_step):
        if not is_row:
            yield from ((pair, None) for pair in group)
            continue
        step = list(group)
        faint, is_fine = _faint_parameters(step), _is_fine(step)
        for pair in step:
            yield pair, FAINT if _is_faint(pair, faint) else HARMLESS if is_fine and _is_small(pair) else None


def _step(pair: Pair) -> tuple[bool, int]:
    call = pair.mine or pair.golden
    assert call is not None
    return is_watched(call), call.step if is_watched(call) else 0


def _faint_parameters(pairs: Sequence[Pair]) -> set[tuple[str, str, str]]:
    sizes: dict[tuple[str, str, str], float] = {}
    for pair in pairs:
        if pair.golden is not None and pair.golden.operator == GRADIENT:
            for tensor in pair.golden.outputs:
                if tensor.statistics is not None:
                    sizes[pair.golden.model, pair.golden.module, tensor.name] = tensor.statistics.rms
    largest = max(sizes.values(), default=0.0)
    return {name for name, size in sizes.items() if size < _FAINT * largest}


def _is_faint(pair: Pair, faint: set[tuple[str, str, str]]) -> bool:
    call = pair.golden
    if call is None or call.operator not in (GRADIENT, *_FOLLOWING) or not call.outputs:
        return False
    return all((call.model, call.module, tensor.name) in faint for tensor in call.outputs)


def _is_fine(pairs: Sequence[Pair]) -> bool:
    """Whether loss and norm of the gradients are both known, and differ as rounding does."""
    known = {}
    for pair in pairs:
        call = pair.mine
        if call is not None and call.operator in (LOSS, GRADIENT_NORM) and pair.outputs:
            known[call.operator] = _distance(pair) <= watched_limit(pair.outputs[0].mine)
    return len(known) == 2 and all(known.values())


def _is_small(pair: Pair) -> bool:
    """Statistics of a batch norm do not count in the loss: they must be about right by themselves."""
    call = pair.mine
    return call is not None and _distance(pair) < (_WRONG_BUFFER if call.operator == BUFFER else math.inf)


def _distance(pair: Pair) -> float:
    return max((each for each in map(distance_of, pair.outputs) if each is not None), default=0.0)
