"""What a call should have given: its results in double precision, and how far correct kernels may be from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from torchferry.accuracy.judge.execution import (
    Outputs,
    Setting,
    TensorSource,
    doubled_inputs,
    execute,
    execute_doubled,
    execute_on_gpu,
    gpu,
    is_floating,
    make_arguments,
    read_inputs,
)
from torchferry.accuracy.judge.margins import (
    FLOOR,
    SMALLEST,
    Compared,
    Terms,
    added_up,
    compare,
    digits_of,
    margins_of,
    moved_by,
    random_signs,
    sensitivity,
    smallest_normal,
    work_of,
)
from torchferry.accuracy.judge.model import CannotExecuteError
from torchferry.accuracy.model import Call, TensorRef, Value
from torchferry.operators.names import without_overload

# Where several answers are right: positions of equal values, results without order, casts that are not defined.

_ALONG_DIMENSION = {
    "aten::max", "aten::min", "aten::sort", "aten::topk", "aten::argmax", "aten::argmin", "aten::argsort",
    "aten::median", "aten::nanmedian", "aten::kthvalue", "aten::mode", "aten::cummax", "aten::cummin",
}  # fmt: skip
_OVER_IMAGE = {
    "aten::max_pool2d_with_indices": 2, "aten::max_pool3d_with_indices": 3, "aten::max_pool1d_with_indices": 1,
    "aten::adaptive_max_pool2d": 2, "aten::adaptive_max_pool3d": 3, "aten::fractional_max_pool2d": 2,
    "aten::fractional_max_pool3d": 3,
}  # fmt: skip
_ONLY_POSITIONS = {"aten::argmax", "aten::argmin", "aten::argsort"}  # the others give values first
_OVER_ALL_BY_DEFAULT = {"aten::argmax", "aten::argmin"}
_LAST_BY_DEFAULT = -1
_CASTS = {"aten::_to_copy", "aten::copy_"}
_UNIQUE = {"aten::_unique2", "aten::_unique"}
Results = Sequence[torch.Tensor | None]


def are_positions(operator: str, output: int) -> bool:
    """Whether this output of an operator holds positions in its first argument."""
    if operator in _ONLY_POSITIONS:
        return output == 0
    return output == 1 and (operator in _ALONG_DIMENSION or operator in _OVER_IMAGE)


def differ_where_casts_are_undefined(
    operator: str, arguments: Mapping[str, Any], mine: torch.Tensor, right: torch.Tensor
) -> bool:
    """Whether whole numbers differ only where they were cast from numbers that their dtype can't hold: what becomes
    of those, each device decides."""
    source: torch.Tensor | None = arguments.get("src", arguments.get("self"))
    is_whole = not (mine.is_floating_point() or mine.is_complex() or mine.dtype == torch.bool)
    if operator not in _CASTS or source is None or not source.is_floating_point() or not is_whole:
        return False
    limits, values = torch.iinfo(mine.dtype), source.expand_as(mine).double()
    fits = (values > float(limits.min) - 1) & (values < float(limits.max) + 1)
    return bool((mine == right)[fits].all())


def is_order_free(operator: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the program does not care for the order of the results."""
    return arguments.get("sorted") is False and (operator in _UNIQUE or operator == "aten::topk")


def in_order(operator: str, arguments: Mapping[str, Any], results: Results) -> list[torch.Tensor | None]:
    """Results whose order is free, in order."""
    values, *others = results
    if values is None or not values.numel():
        return list(results)
    if operator in _UNIQUE:
        order = values.argsort()
        ranks = order.argsort()
        inverse, counts = (*others, None, None)[:2]
        found = [values[order], ranks[inverse] if inverse is not None and inverse.numel() else inverse]
        return [*found, counts[order] if counts is not None and counts.numel() else counts][: len(results)]
    dimension = arguments.get("dim", _LAST_BY_DEFAULT) if values.dim() else 0
    order = values.argsort(dim=dimension, descending=arguments.get("largest") is not False)
    return [each.gather(dimension, order) if each is not None else None for each in results]


def point_to_equal_values(
    operator: str, arguments: Mapping[str, Any], mine: torch.Tensor, right: torch.Tensor
) -> bool:
    """`mine` and `right` are positions in the operator's first argument."""
    source: torch.Tensor = arguments.get("self", arguments.get("input"))
    if source is None or mine.dtype.is_floating_point or mine.shape != right.shape:
        return False
    try:
        if operator in _OVER_IMAGE:
            flat = source.flatten(-_OVER_IMAGE[operator])
            chosen, best = (_at(flat, each.flatten(-_OVER_IMAGE[operator]), -1) for each in (mine, right))
        elif operator in _ALONG_DIMENSION:
            default = None if operator in _OVER_ALL_BY_DEFAULT else _LAST_BY_DEFAULT
            dimension = arguments.get("dim", default)
            if dimension is None:
                source, dimension, mine, right = source.flatten(), 0, mine.reshape(1), right.reshape(1)
            kept = arguments.get("keepdim", False) or mine.dim() == source.dim()
            indices = [each if kept else each.unsqueeze(dimension) for each in (mine, right)]
            chosen, best = (_at(source, each, dimension) for each in indices)
        else:
            return False
    except (IndexError, RuntimeError):  # positions outside of the argument
        return False
    return bool(((chosen == best) | (chosen.isnan() & best.isnan())).all())


def _at(source: torch.Tensor, indices: torch.Tensor, dimension: int) -> torch.Tensor:
    count = source.shape[dimension] if source.dim() else 1
    if bool((indices < 0).any()) or bool((indices >= count).any()):
        raise IndexError("outside")
    return source.gather(dimension, indices.long()) if source.dim() else source


_WORKSPACES = {"aten::_ctc_loss": (1,)}  # results of which only parts are written


def different_contents(call: Call) -> list[int]:
    """The outputs, without those that are another one once more, or memory of which only parts are written."""
    seen: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    skipped = _WORKSPACES.get(without_overload(call.operator), ())
    for number, record in enumerate(call.outputs):
        if number in skipped:
            continue
        key = (record.content or -number - 1, record.shape, record.stride)
        seen.setdefault(key, number)
    return list(seen.values())


_REFUSALS = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError, KeyError)
_FOR_GPUS = ("product", "convolution")
_MUCH = 1 << 26  # products of numbers that are worth the way to a GPU and back
_ADDED_WITH_FACTOR = ("add", "sub")  # products, as addmm, have another class


class Reference:
    """What one call should have given; what is asked for is computed once. Raises `CannotExecuteError` where nothing
    can be."""

    def __init__(self, call: Call, source: TensorSource) -> None:
        self.call = call
        self.margins = margins_of(call.operator, _variant(call))
        self.given = read_inputs(source, call)
        self.inputs = self.widened(self.given)
        self.right = self.in_order(attempt(lambda: self.execute(self.inputs)))

    def widened(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs with the digits in which the call is made again."""
        return doubled_inputs(given)

    @cached_property
    def moved(self) -> Outputs:
        """How far each element of the results moves when inputs are slightly off."""
        # some arguments must hold certain values: then it can't be found out
        return results_if_any(
            self.call, lambda: sensitivity(self.call, self.inputs, self.right, self.execute, self.margins)
        )

    def execute(self, inputs: Sequence[torch.Tensor], factors: Mapping[str, float] | None = None) -> Outputs:
        """The call in double precision, with other inputs; numbers are multiplied by `factors`. Where it is much, on a
        GPU."""
        if self._is_for_gpu:
            found = execute_on_gpu(self.call, inputs, factors)
            if found is not None:
                return found
        return execute_doubled(self.call, inputs, factors)

    @cached_property
    def _is_for_gpu(self) -> bool:
        is_product = self.margins.name in _FOR_GPUS
        return is_product and gpu() is not None and work_of(self.call, self.margins) >= _MUCH

    def of_flushed_inputs(self) -> Reference | None:
        """As devices have it that take the smallest numbers for zero; None where no input has such numbers."""
        inputs = [
            _flushed(tensor, each.dtype) for tensor, each in zip(self.inputs, self.call.inputs, strict=True)
        ]
        if all(one is other for one, other in zip(inputs, self.inputs, strict=True)):
            return None
        other = copy(self)
        other.inputs = inputs
        for found in ("moved", "_typical"):
            other.__dict__.pop(found, None)
        try:
            other.right = self.in_order(attempt(lambda: execute_doubled(self.call, inputs)))
        except CannotExecuteError:
            return None
        return other

    @cached_property
    def of_host(self) -> Outputs:
        """What the CPU's own kernel gives, in the call's own dtypes; nothing if it has none."""
        return self.in_order(results_if_any(self.call, lambda: execute(self.call, self.given, "cpu")))

    def in_order(self, results: Outputs) -> Outputs:
        """Results that may come in any order, in one; others as they are."""
        operator, arguments = without_overload(self.call.operator), self.arguments()
        return in_order(operator, arguments, results) if is_order_free(operator, arguments) else results

    def arguments(self) -> dict[str, Any]:
        """As the call was given them."""
        return self.arguments_of(self.given)

    def arguments_of(self, inputs: Sequence[torch.Tensor]) -> dict[str, Any]:
        """The same with other inputs."""
        return make_arguments(self.call, inputs, Setting())

    def compare(self, output: int, result: torch.Tensor, closely: bool) -> Compared:
        """A result of this call; `closely` with the sensitivity, which takes a while to find out."""
        right = self.right[output]
        assert right is not None
        # of the first argument, where the result may be much smaller
        magnitude, first = None, self.inputs[0] if self.margins.absolute else None
        if first is not None and first.shape == right.shape:
            magnitude = first.abs() * 2.0**-24
        moved = self.moved[output] if closely else magnitude
        if closely and magnitude is not None and moved is not None:
            moved = torch.maximum(moved, magnitude)
        dtype = self.call.outputs[output].dtype
        return compare(result, right, moved, dtype, self.margins, self.terms(output))

    def compare_typically(self, output: int, result: torch.Tensor) -> Compared | None:
        """With the sensitivity that every element has at least, where elements mix: a sample tells it. None: elsewhere,
        it is worth as little as none."""
        right = self.right[output]
        assert right is not None
        if self.margins.pointwise or self.margins.absolute:
            return None
        least = self._typical[output]
        if least is None:
            return None
        terms = replace(self.terms(output), least=least)
        return compare(result, right, None, self.call.outputs[output].dtype, self.margins, terms)

    @cached_property
    def _typical(self) -> list[float | None]:
        none: list[float | None] = [None] * len(self.right)
        try:
            signs = next(iter(random_signs(self.inputs)))
            moved = attempt(
                lambda: self.execute([moved_by(*each) for each in zip(self.inputs, signs, strict=True)])
            )
        except CannotExecuteError:
            return none
        return [
            FLOOR * float((one - other).square_().mean().sqrt())
            if one is not None and other is not None and other.is_floating_point()
            else None
            for one, other in zip(moved, self.right, strict=True)
        ]

    def terms(self, output: int) -> Terms:
        """What the limit of a result depends on besides its class."""
        record, margins = self.call.outputs[output], self.margins
        largest = max((each.elements for each in self.call.inputs), default=0)
        digits = [found.digits for each in self.call.inputs if (found := digits_of(each.dtype)) is not None]
        count = added_up(self.call, output, margins)
        tiny = 0.0
        if margins.inner and record.dtype in SMALLEST:
            floats = (tensor for tensor in self.inputs if tensor.is_floating_point())
            sizes = [float(tensor.square().mean().sqrt()) for tensor in floats]
            tiny = margins.inner * SMALLEST[record.dtype] * math.sqrt(count) * max(sizes, default=0.0)
        addend = self._addend(output) if margins.addend else None
        return Terms(count, record.elements < largest, addend, min(digits, default=24), tiny)

    def _addend(self, output: int) -> torch.Tensor | None:
        """The bias of a convolution, or what a product of matrices is added to."""
        names = {record.name: tensor for record, tensor in zip(self.call.inputs, self.inputs, strict=True)}
        bias, right = names.get("input/bias"), self.right[output]
        if bias is not None and right is not None and output == 0 and right.dim() > 2:
            return bias.reshape(-1, *[1] * (right.dim() - 2))
        added = names.get("input/self") if "add" in without_overload(self.call.operator) else None
        return added * self.arguments().get("beta", 1) if added is not None else None


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


def results_if_any(call: Call, work: Callable[[], Outputs]) -> Outputs:
    """Make a call; where it can't be executed, there is nothing in the place of each output."""
    try:
        return attempt(work)
    except CannotExecuteError:
        return [None] * len(call.outputs)


def _variant(call: Call) -> str:
    """What the arguments make of an operator: another class of errors."""
    given: dict[str, Value] = dict(call.arguments)
    if given.get("accumulate") is True:
        return "accumulate"
    alpha = given.get("alpha", 1)
    name = without_overload(call.operator).partition("::")[2]
    base = name.removeprefix("_foreach_").removeprefix("r").strip("_")
    is_scaled = isinstance(alpha, TensorRef) or alpha not in (1, -1)
    return "alpha" if is_scaled and base in _ADDED_WITH_FACTOR else ""
