"""What an operator makes of inputs that are slightly off: the error that a correct kernel can't avoid, element by
element; and how many terms it adds up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch

from torchferry.accuracy.judge.arguments import is_floating
from torchferry.accuracy.judge.margins import Margins
from torchferry.accuracy.model import Call
from torchferry.operators.names import without_overload

UNIT = 2.0**-24  # half a unit in the last place of single precision, relative
_SAMPLES = 3
_FLOOR = 0.35  # of the mean over the tensor: by chance, a few samples can be small in one element
_SEED = 20260
Outputs = list[torch.Tensor | None]
Execute = Callable[[Sequence[torch.Tensor], Mapping[str, float]], Outputs]


def sensitivity(
    call: Call, inputs: Sequence[torch.Tensor], right: Outputs, execute: Execute, margins: Margins
) -> Outputs:
    """How far each element of the results moves when every input is off by `UNIT` of itself, root mean square."""
    squares: list[torch.Tensor | None] = [
        torch.zeros_like(tensor, dtype=torch.float64) if tensor is not None and is_floating(tensor) else None
        for tensor in right
    ]
    numbers = [name for name, value in call.arguments if isinstance(value, float)] if margins.numbers else []
    signs: Iterable[Factors] = (
        _signs_by_argument(call, numbers) if margins.pointwise else _random_signs(inputs)
    )
    samples = 0
    for factors in signs:
        of_numbers = dict(zip(numbers, factors[len(inputs) :], strict=False))
        moved = execute(
            _moved(inputs, factors[: len(inputs)]),
            {name: 1.0 + UNIT * float(sign) for name, sign in of_numbers.items()},
        )
        samples += 1
        for total, result, first in zip(squares, moved, right, strict=True):
            if total is not None and result is not None and first is not None:
                total += (result - first).abs().square().nan_to_num_(0.0, 0.0, 0.0)
    found: Outputs = []
    for total in squares:
        if total is None:
            found.append(None)
            continue
        deviation = total.div_(samples).sqrt_()
        if not margins.pointwise and deviation.numel():
            deviation.clamp_min_(_FLOOR * float(deviation.square().mean().sqrt()))
        found.append(deviation)
    return found


Factors = list[torch.Tensor | float]


def _moved(inputs: Sequence[torch.Tensor], factors: Factors) -> list[torch.Tensor]:
    return [
        tensor * (1.0 + UNIT * factor) if is_floating(tensor) else tensor
        for tensor, factor in zip(inputs, factors, strict=True)
    ]


def _signs_by_argument(call: Call, numbers: list[str]) -> list[Factors]:
    """Where elements do not mix: one sign for each argument, in combinations whose effects add up in squares."""
    arguments = [*(record.name.split("/")[1] for record in call.inputs), *numbers]
    order = list(dict.fromkeys(arguments))
    size = 1 << max(0, math.ceil(math.log2(max(1, len(order)))))
    return [
        [1.0 if bin(row & order.index(name)).count("1") % 2 == 0 else -1.0 for name in arguments]
        for row in range(size)
    ]


def _random_signs(inputs: Sequence[torch.Tensor]) -> Iterator[Factors]:
    """One sample after the other: they take as much memory as the inputs."""
    generator = torch.Generator().manual_seed(_SEED)
    for _ in range(_SAMPLES):
        yield [
            torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.int8).mul_(2).sub_(1).double()
            if is_floating(tensor)
            else 1.0
            for tensor in inputs
        ]


def added_up(call: Call, output: int, margins: Margins) -> float:
    """How many terms one element of a result is the sum of, at most."""
    if margins.pointwise:
        return 1.0
    base = without_overload(call.operator).partition("::")[2]
    sizes = [math.prod(record.shape) for record in call.inputs]
    if "convolution_backward" in base:
        return _of_convolution_backward(call, output)
    if "conv" in base and len(call.inputs) > 1:
        weight = call.inputs[1].shape
        return max(1.0, math.prod(weight) / max(1, min(weight[:2])))
    whole = [
        math.prod(record.shape)
        for record in call.inputs
        if not record.dtype.startswith(("float", "bfloat", "complex"))
    ]
    results = [math.prod(record.shape) or 1 for record in call.outputs] or [1]
    if margins.reduced and len(sizes) > 1:
        largest = sorted(sizes)[-2:]
        return max(1.0, math.sqrt(largest[0] * largest[1] / results[0]))
    widest = max((size for record in call.inputs for size in record.shape), default=1)
    return max([1.0, max(sizes, default=1) / min(results), widest, *whole])


def _of_convolution_backward(call: Call, output: int) -> float:
    gradient, weight = call.inputs[0].shape, call.inputs[2].shape if len(call.inputs) > 2 else (1, 1)
    of_input = math.prod(weight) / max(1, min(weight[:2]))
    of_weight = math.prod(gradient) / max(1, gradient[1] if len(gradient) > 1 else 1)
    is_input = (
        call.outputs[output].name == "output/output_0" and call.outputs[output].shape == call.inputs[1].shape
    )
    return max(1.0, of_input if is_input else max(of_weight, 1.0))
