"""The mistakes that kernels make: each takes a call that was made and gives a wrong result."""

from __future__ import annotations

from typing import Any

import torch

from .kernels import Kernel, Made


def tail(count: int, value: float = 0.0) -> Kernel:
    """The last elements are not written."""

    def kernel(made: Made) -> torch.Tensor:
        made.result.view(-1)[-count:] = value
        return made.result

    return kernel


def scaled(factor: float) -> Kernel:
    return lambda made: made.result * factor


def offset(value: float) -> Kernel:
    return lambda made: made.result + value


def at(place: int, value: float) -> Kernel:
    """One element."""

    def kernel(made: Made) -> torch.Tensor:
        made.result.reshape(-1)[place] = value
        return made.result

    return kernel


def channel(number: int, factor: float, dimension: int = 1) -> Kernel:
    def kernel(made: Made) -> torch.Tensor:
        made.result.select(dimension, number).mul_(factor)
        return made.result

    return kernel


def tile(rows: int, columns: int) -> Kernel:
    """A block of the last two dimensions is zero."""

    def kernel(made: Made) -> torch.Tensor:
        made.result[..., :rows, :columns] = 0
        return made.result

    return kernel


def stripe(every: int, factor: float) -> Kernel:
    def kernel(made: Made) -> torch.Tensor:
        made.result.view(-1)[::every] *= factor
        return made.result

    return kernel


def stale(made: Made) -> torch.Tensor:
    """What an earlier call has left in the memory."""
    alike = [each for each in made.earlier if each.shape == made.result.shape]
    return alike[-1]


def unwritten(made: Made) -> torch.Tensor:
    """The argument stays as it was."""
    first = made.args[0]
    return first[made.output] if isinstance(first, list) else first


def without(argument: int) -> Kernel:
    """An addend is forgotten."""
    return lambda made: made.result - made.args[argument].to(made.result.dtype)


def truncated(made: Made) -> torch.Tensor:
    """Rounded towards zero instead of to the nearest."""
    is_cast = made.func.name() == "aten::_to_copy"
    exact = made.args[0].double() if is_cast else made.again(torch.float64)
    rounded = exact.to(made.result.dtype)
    towards = torch.zeros((), dtype=made.result.dtype)
    if made.result.dtype == torch.bfloat16:
        bits = exact.float().view(torch.int32) & -65536
        return bits.view(torch.float32).to(torch.bfloat16)
    return torch.where(rounded.double().abs() > exact.abs(), torch.nextafter(rounded, towards), rounded)


def shifted(dimension: int) -> Kernel:
    return lambda made: made.result.roll(1, dimension)


def transposed(made: Made) -> torch.Tensor:
    return made.result.transpose(-1, -2).reshape(made.result.shape)


def negated(made: Made) -> torch.Tensor:
    return -made.result


def with_argument(position: int, value: Any) -> Kernel:
    """The kernel takes another value for an argument, as an epsilon or a weight."""

    def kernel(made: Made) -> torch.Tensor:
        args = [*made.args[:position], value, *made.args[position + 1 :]]
        return made.chosen(made.func(*args, **made.kwargs), tuple(args))

    return kernel


def with_option(**options: Any) -> Kernel:
    return lambda made: made.again(made.result.dtype, **options)


def added_up_in(dtype: torch.dtype) -> Kernel:
    """Products whose sums are rounded after each term."""

    def kernel(made: Made) -> torch.Tensor:
        *addend, one, other = made.args[:3] if made.func.name() == "aten::addmm" else made.args[:2]
        total = torch.zeros(made.result.shape, dtype=dtype)
        for term in range(one.shape[-1]):
            total += (one[..., term : term + 1].float() * other[..., term : term + 1, :].float()).to(dtype)
        return total.float() + addend[0].float() if addend else total.float()

    return kernel


def without_last_terms(count: int) -> Kernel:
    """The loop over the inner dimension ends early."""

    def kernel(made: Made) -> torch.Tensor:
        one, other = made.args[-2:]
        return made.again(torch.float64, one[..., :-count], other[..., :-count, :])

    return kernel


def without_last_image(made: Made) -> torch.Tensor:
    """A gradient that is the sum over all images but one."""
    gradient, source = made.args[:2]
    return made.again(torch.float64, gradient[:-1], source[:-1])


def sum_in(dtype: torch.dtype) -> Kernel:
    """Adds up one after the other along the first dimension that it sums over."""

    def kernel(made: Made) -> torch.Tensor:
        source, dimensions = made.args[0], made.args[1]
        moved = source.movedim(dimensions, list(range(len(dimensions)))).flatten(0, len(dimensions) - 1)
        total = torch.zeros(moved.shape[1:], dtype=dtype)
        for row in moved:
            total += row.to(dtype)
        return total.float().reshape(made.result.shape)

    return kernel


def convolution_in(dtype: torch.dtype) -> Kernel:
    """Adds up the channels of the input in few digits."""

    def kernel(made: Made) -> torch.Tensor:
        source, weight, bias = made.args[:3]
        total = torch.zeros(made.result.shape, dtype=dtype)
        for number in range(source.shape[1]):
            one = (source[:, number : number + 1].float(), weight[:, number : number + 1].float(), None)
            total += made.again(torch.float32, *one).to(dtype)
        return total.float() + bias.float().view(-1, 1, 1)

    return kernel


def embedding_without_duplicates(made: Made) -> torch.Tensor:
    """Only the last gradient of a word counts."""
    gradient, words = made.args[:2]
    wrong = torch.zeros_like(made.result)
    wrong[words.reshape(-1)] = gradient.reshape(-1, gradient.shape[-1])
    return wrong


def second_largest(made: Made) -> torch.Tensor:
    """Every tenth window gives its second largest element."""
    source = made.args[0]
    windows = torch.nn.functional.unfold(source.float(), 2, stride=2).view(*source.shape[:2], 4, -1)
    second = windows.topk(2, 2).values[:, :, 1].reshape(made.result.shape).to(made.result.dtype)
    made.result.view(-1)[::10] = second.reshape(-1)[::10]
    return made.result


def softmax_of_tail(made: Made) -> torch.Tensor:
    """The last row is normalised along the other dimension."""
    wrong = made.args[0].double().softmax(-2)
    made.result[-1] = wrong[-1].to(made.result.dtype)
    return made.result


def biased_variance(made: Made) -> torch.Tensor:
    """Running variance from n instead of n - 1."""
    source, momentum = made.args[0].float(), made.args[6]
    old = made.args[4]
    return old * (1 - momentum) + momentum * source.var((0, 2, 3), correction=0)


def gates_by_table(step: float) -> Kernel:
    """A sigmoid by a table with straight lines in between."""

    def kernel(made: Made) -> torch.Tensor:
        source = made.args[0].double()
        low = (source / step).floor() * step
        return torch.lerp(low.sigmoid(), (low + step).sigmoid(), (source - low) / step)

    return kernel


def saturated(limit: float) -> Kernel:
    """A tanh that takes large arguments for 1."""

    def kernel(made: Made) -> torch.Tensor:
        source = made.args[0].double()
        return torch.where(source.abs() > limit, source.sign(), source.tanh()).to(made.result.dtype)

    return kernel


def derivative_of_tanh(made: Made) -> torch.Tensor:
    gradient, result = (each.double() for each in made.args[:2])
    return gradient * (1 - result.abs())


def statistics_in(dtype: torch.dtype) -> Kernel:
    """A layer norm with its mean and variance in few digits."""

    def kernel(made: Made) -> torch.Tensor:
        source, _, weight, bias, epsilon = made.args
        source = source.double()
        mean = source.mean(-1, True).to(dtype).double()
        variance = source.var(-1, correction=0, keepdim=True).to(dtype).double()
        normal = (source - mean) / (variance + epsilon).sqrt()
        return (normal * weight.double() + bias.double()).to(made.result.dtype)

    return kernel
