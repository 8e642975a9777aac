"""What a call should have given: its results in double precision, and how far correct kernels may be from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import torch

from torchferry.accuracy.model import Call, TensorRef, Value
from torchferry.accuracy.replay.arguments import (
    CannotExecuteError,
    Setting,
    doubled_inputs,
    is_floating,
    make_arguments,
)
from torchferry.accuracy.replay.errors import SMALLEST, Compared, Terms, compare, smallest_normal
from torchferry.accuracy.replay.execution import Outputs, Source, execute, execute_doubled, read_inputs
from torchferry.accuracy.replay.indices import in_order, is_order_free
from torchferry.accuracy.replay.margins import digits_of, margins_of
from torchferry.accuracy.replay.operators import base_name
from torchferry.accuracy.replay.sensitivity import added_up, sensitivity

_REFUSALS = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError, KeyError)
_ADDED_WITH_FACTOR = ("add", "sub")  # products, as addmm, have another class


class Reference:
    """Of one call; what is asked for is computed once. Raises `CannotExecuteError` where nothing can be."""

    def __init__(self, call: Call, source: Source) -> None:
        self.call = call
        self.margins = margins_of(call.operator, _variant(call))
        self.given = read_inputs(source, call)
        self.inputs = doubled_inputs(self.given)
        self.right = self.in_order(attempt(lambda: execute_doubled(call, self.inputs)))
        self._moved: Outputs | None = None
        self._of_host: Outputs | None = None

    @property
    def moved(self) -> Outputs:
        """How far each element of the results moves when inputs are slightly off."""
        if self._moved is None:
            try:
                self._moved = attempt(self._sensitivity)
            except CannotExecuteError:  # some arguments must hold certain values
                self._moved = [None] * len(self.call.outputs)
        return self._moved

    def _sensitivity(self) -> Outputs:
        return sensitivity(self.call, self.inputs, self.right, self.execute, self.margins)

    def execute(self, inputs: Sequence[torch.Tensor], factors: Mapping[str, float] | None = None) -> Outputs:
        """The call in double precision, with other inputs; numbers are multiplied by `factors`."""
        return execute_doubled(self.call, inputs, factors)

    def of_flushed_inputs(self) -> Reference | None:
        """As devices have it that take the smallest numbers for zero; None where no input has such numbers."""
        inputs = [
            _flushed(tensor, each.dtype) for tensor, each in zip(self.inputs, self.call.inputs, strict=True)
        ]
        if all(one is other for one, other in zip(inputs, self.inputs, strict=True)):
            return None
        other = copy(self)
        other.inputs, other._moved = inputs, None
        try:
            other.right = self.in_order(attempt(lambda: execute_doubled(self.call, inputs)))
        except CannotExecuteError:
            return None
        return other

    def of_host(self) -> Outputs:
        """What the CPU's own kernel gives, in the call's own dtypes; nothing if it has none."""
        if self._of_host is None:
            try:
                self._of_host = self.in_order(attempt(lambda: execute(self.call, self.given, "cpu")))
            except CannotExecuteError:
                self._of_host = [None] * len(self.call.outputs)
        return self._of_host

    def in_order(self, results: Outputs) -> Outputs:
        """Results that may come in any order, in one; others as they are."""
        operator, arguments = base_name(self.call.operator), self.arguments()
        return in_order(operator, arguments, results) if is_order_free(operator, arguments) else results

    def arguments(self) -> dict[str, Any]:
        """As the call was given them."""
        return make_arguments(self.call, self.given, Setting())

    def compare(self, output: int, result: torch.Tensor, closely: bool) -> Compared:
        """A result of this call; `closely` with the sensitivity, which takes a while to find out."""
        right = self.right[output]
        assert right is not None
        margins = self.margins
        moved = self.moved[output] if closely else self._magnitude(output) if margins.absolute else None
        if closely and margins.absolute and moved is not None:
            moved = torch.maximum(moved, _broad(self._magnitude(output), moved))
        return compare(result, right, moved, self.call.outputs[output].dtype, margins, self._terms(output))

    def _terms(self, output: int) -> Terms:
        record, margins = self.call.outputs[output], self.margins
        largest = max((each.elements for each in self.call.inputs), default=0)
        digits = [found.digits for each in self.call.inputs if (found := digits_of(each.dtype)) is not None]
        count = added_up(self.call, output, margins)
        tiny = 0.0
        if margins.inner and record.dtype in SMALLEST:
            sizes = [
                float(tensor.square().mean().sqrt()) for tensor in self.inputs if tensor.is_floating_point()
            ]
            tiny = margins.inner * SMALLEST[record.dtype] * math.sqrt(count) * max(sizes, default=0.0)
        addend = self._addend(output) if margins.addend else None
        return Terms(count, record.elements < largest, addend, min(digits, default=24), tiny)

    def _addend(self, output: int) -> torch.Tensor | None:
        """The bias of a convolution, or what a product of matrices is added to."""
        names = {record.name: tensor for record, tensor in zip(self.call.inputs, self.inputs, strict=True)}
        bias, right = names.get("input/bias"), self.right[output]
        if bias is not None and right is not None and output == 0 and right.dim() > 2:
            return bias.reshape(-1, *[1] * (right.dim() - 2))
        added = names.get("input/self") if "add" in base_name(self.call.operator) else None
        return added * self.arguments().get("beta", 1) if added is not None else None

    def _magnitude(self, output: int) -> torch.Tensor | None:
        """Of the first argument, where the result may be much smaller."""
        right = self.right[output]
        first = self.inputs[0]
        return first.abs() * 2.0**-24 if right is not None and first.shape == right.shape else None


def _broad(magnitude: torch.Tensor | None, moved: torch.Tensor) -> torch.Tensor:
    return moved if magnitude is None else magnitude


def _flushed(tensor: torch.Tensor, dtype: str) -> torch.Tensor:
    smallest = smallest_normal(dtype)
    if not is_floating(tensor) or not smallest:
        return tensor
    small = (tensor != 0) & (tensor.abs() < smallest)
    return tensor.masked_fill(small, 0.0) if bool(small.any()) else tensor


def attempt(work: Callable[[], Outputs]) -> Outputs:
    """Make a call; one that PyTorch refuses can't be executed."""
    try:
        with torch.no_grad():
            return work()
    except _REFUSALS as error:
        said = str(error).strip().splitlines()
        raise CannotExecuteError(said[0] if said else type(error).__name__) from None


def _variant(call: Call) -> str:
    """What the arguments make of an operator: another class of errors."""
    given: dict[str, Value] = dict(call.arguments)
    if given.get("accumulate") is True:
        return "accumulate"
    alpha = given.get("alpha", 1)
    base = (
        call.operator.partition("::")[2]
        .partition(".")[0]
        .removeprefix("_foreach_")
        .removeprefix("r")
        .strip("_")
    )
    is_scaled = isinstance(alpha, TensorRef) or alpha not in (1, -1)
    return "alpha" if is_scaled and base in _ADDED_WITH_FACTOR else ""
