"""Clears calls at little cost: what is right without a doubt needs no double precision.

A call that is not cleared is not wrong: it is judged in double precision then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import torch

from torchferry.accuracy.judge import products
from torchferry.accuracy.judge.execution import Outputs, TensorSource, execute, is_floating, read_inputs
from torchferry.accuracy.judge.kernel_faults import leaning
from torchferry.accuracy.judge.margins import (
    FLOOR,
    UNIT,
    Compared,
    Errors,
    Factors,
    compare,
    digits_of,
    margins_of,
    random_signs,
    work_of,
)
from torchferry.accuracy.judge.model import CannotExecuteError, Judgement, Verdict
from torchferry.accuracy.judge.references import (
    Reference,
    Results,
    attempt,
    different_contents,
    results_if_any,
)
from torchferry.accuracy.model import Call

FLOAT64, FLOAT32, BITS = "float64", "float32", "bits"  # what a judgement is based on
_OF_BITS = ("exact", "rounded", "compound")  # classes that most devices round as the CPU does
_OF_SINGLE = ("product", "convolution", "composed")  # classes that take long in double precision
_SINGLE = ("float32", "float16", "bfloat16")
_LEAST_WORK = 1 << 22  # products of numbers; fewer are done at once
# Of what may be computed wrongly; the rest is left to single precision, whose own kernels took at most 0.34 of it (matrix
# products with up to 4096 terms, the largest error of a million elements).
_TRUST = 0.6
_STEP = 2.0**-10  # by which inputs are moved, to see what single precision shows of it


def clear(call: Call, source: TensorSource) -> Judgement | None:
    """The judgement of a call that is right without a doubt; None: it has to be judged."""
    margins = margins_of(call.operator)
    if margins.name in _OF_BITS:
        return _by_bits(call, source)
    if is_held_against_single(call) and work_of(call, margins) >= _LEAST_WORK:
        return _by_single(call, source)
    return None


def is_held_against_single(call: Call) -> bool:
    """Whether its results may be held against single precision first."""
    records = (*call.inputs, *call.outputs)
    floats = [each.dtype for each in records if digits_of(each.dtype) is not None]
    return margins_of(call.operator).name in _OF_SINGLE and all(dtype in _SINGLE for dtype in floats)


def _by_bits(call: Call, source: TensorSource) -> Judgement | None:
    """What the CPU's own kernel gives is right: all judgements take it for that."""
    try:
        found = attempt(lambda: execute(call, read_inputs(source, call), "cpu"))
    except CannotExecuteError:
        return None
    if not all(_is_equal(call, source, found, number) for number in different_contents(call)):
        return None
    return Judgement(Verdict.NORMAL, output=call.outputs[0].name, own_error=0.0, basis=BITS)


def _is_equal(call: Call, source: TensorSource, found: Results, number: int) -> bool:
    record, right = call.outputs[number], found[number]
    if right is None or (record.offset is None and record.elements):
        return right is None
    if tuple(right.shape) != record.shape:
        return False
    return not record.elements or torch.equal(source.tensor(record), right)


def _by_single(call: Call, source: TensorSource) -> Judgement | None:
    try:
        reference = SingleReference(call, source)
    except CannotExecuteError:
        return None
    errors: list[tuple[float, str]] = []
    for number in different_contents(call):
        error = _error(reference, source, number)
        if error == math.inf:
            return None
        if error is not None:
            errors.append((error, call.outputs[number].name))
    if not errors:
        return None
    worst, name = max(errors)
    return Judgement(Verdict.NORMAL, output=name, own_error=worst, basis=FLOAT32)


def _error(reference: SingleReference, source: TensorSource, number: int) -> float | None:
    """Of a result, relative; infinite where it is not right without a doubt, None where nothing can be said."""
    record, right = reference.call.outputs[number], reference.right[number]
    if right is None or record.offset is None:
        return None
    if tuple(right.shape) != record.shape:
        return math.inf
    result = source.tensor(record)
    errors, digits = reference.compare(number, result, closely=False).errors, digits_of(record.dtype)
    if errors.worst > 1.0 and reference.margins.inner:
        errors = _excused(reference, number, reference.compare(number, result, closely=True).errors)
    is_right = errors.worst <= 1.0 and digits is not None
    if is_right and digits is not None and digits.digits != digits.compute:
        is_right = leaning(reference, number, lambda: result) is None
    return errors.relative if is_right else math.inf


def _excused(reference: SingleReference, number: int, errors: Errors) -> Errors:
    """Where the CPU's own kernel errs nearly as much, the operator is a difficult one."""
    host, right = reference.of_host[number], reference.right[number]
    dtype = reference.call.outputs[number].dtype
    if errors.worst <= 1.0 or host is None or right is None or host.shape != right.shape:
        return errors
    if str(host.dtype) != f"torch.{dtype}":
        return errors
    others = [reference.compare(number, host, closely=True).errors]
    return errors.excused_by(others, reference.margins.margin)


class SingleReference(Reference):
    """What a call should have given, in single precision; of what may be computed wrongly, a part is left to that."""

    def widened(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [tensor.float() if is_floating(tensor) else tensor for tensor in given]

    def compare(self, output: int, result: torch.Tensor, closely: bool) -> Compared:
        """Closely: with what is found out for each element, instead of for all together."""
        right = self.right[output]
        assert right is not None
        moved, least = (self.moved[output] if closely else self._moved(output)), 0.0
        if moved is not None and not moved.dim():
            least, moved = float(moved), None
        terms = replace(self.terms(output), trust=_TRUST, least=least)
        return compare(result, right, moved, self.call.outputs[output].dtype, self.margins, terms)

    def _moved(self, output: int) -> torch.Tensor | None:
        known = products.moved_by_rounding(self.call, self._arguments, output)
        if known is not None:
            return known
        squares = self._shaken[0][output]
        return squares.mean(dtype=torch.float64).sqrt_().mul_(FLOOR) if squares is not None else None

    @cached_property
    def _arguments(self) -> dict[str, object]:
        return self.arguments_of(self.inputs)

    @cached_property
    def moved(self) -> Outputs:
        """How far each element of the results moves when every input is off by `UNIT` of itself."""
        samples = [*self._shaken, *(self._shake(signs) for signs in [*random_signs(self.inputs)][1:])]
        found: Outputs = []
        for squares in zip(*samples, strict=True):
            known = [each for each in squares if each is not None]
            moved = sum(known[1:], known[0]).double().div_(len(known)).sqrt_() if known else None
            found.append(moved)
            if moved is not None and moved.numel():
                moved.clamp_min_(FLOOR * float(moved.square().mean().sqrt()))
        return found

    @cached_property
    def _shaken(self) -> list[Outputs]:
        """The first sample."""
        return [self._shake(next(iter(random_signs(self.inputs))))]

    def _shake(self, signs: Factors) -> Outputs:
        """Squares of how far each element moves: inputs are moved so far that single precision shows it."""
        inputs = [
            torch.addcmul(tensor, tensor, sign.to(tensor.dtype), value=_STEP)
            if isinstance(sign, torch.Tensor)
            else tensor
            for tensor, sign in zip(self.inputs, signs, strict=True)
        ]
        moved = results_if_any(self.call, lambda: self.execute(inputs))
        return [
            (one - other).mul_(UNIT / _STEP).square_()
            if one is not None and other is not None and is_floating(one)
            else None
            for one, other in zip(moved, self.right, strict=True)
        ]
