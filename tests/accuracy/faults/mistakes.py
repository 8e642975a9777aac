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


def layer_norm_outside(made: Made) -> torch.Tensor:
    """The epsilon is added to the root, not under it."""
    source, _, weight, bias, epsilon = made.args
    source = source.double()
    deviation = source.var(-1, correction=0, keepdim=True).sqrt()
    normal = (source - source.mean(-1, True)) / (deviation + epsilon)
    return (normal * weight.double() + bias.double()).to(made.result.dtype)


def exchanged(other: int) -> Kernel:
    """Another result in the place of this one."""

    def kernel(made: Made) -> torch.Tensor:
        return made.func(*made.args, **made.kwargs)[other].reshape(made.result.shape)

    return kernel


def one_head(made: Made) -> torch.Tensor:
    """A derivative in which one part of the batch lacks the sum over its row."""
    gradient, output = (each.double() for each in made.args[:2])
    made.result[-1] = (gradient * output)[-1].to(made.result.dtype)
    return made.result


def masked_with(value: float) -> Kernel:
    """A large number in the place of infinity."""
    return lambda made: torch.where(made.args[1].expand_as(made.result), value, made.args[0])


def log_softmax_in_half(made: Made) -> torch.Tensor:
    """The sum of the exponents has few digits."""
    source = made.args[0].double()
    source = source - source.amax(-1, True)
    return source - source.exp().half().sum(-1, True).double().log()


def softmax_without_largest(made: Made) -> torch.Tensor:
    """Exponents overflow where the largest is not taken off first."""
    grown = (made.args[0].float() + 89.0).exp()
    return grown / grown.sum(-1, True)


def gradient_of_padding(made: Made) -> torch.Tensor:
    """The word that does not count has a gradient."""
    gradient, words, *_ = made.args
    return torch.zeros_like(made.result).index_add_(0, words.flatten(), gradient.flatten(0, -2))


def ignored_targets_count(made: Made) -> torch.Tensor:
    """The loss is divided by all targets."""
    return made.result * (made.args[1] != -100).sum() / made.args[1].numel()


def step_ahead(made: Made) -> torch.Tensor:
    """A bias correction for the step after."""
    args = [[each.clone() for each in value] if isinstance(value, list) else value for value in made.args]
    for each in args[5]:
        each.add_(1.0)
    made.func(*args, **made.kwargs)
    return args[0][made.output]


def pooled_without_padding(made: Made) -> torch.Tensor:
    """At the border, the mean is over what is there."""
    source, size, stride, padding, *_ = made.args
    return torch.ops.aten.avg_pool2d(source, size, stride, padding, False, False)


def pooled_with_zeros(made: Made) -> torch.Tensor:
    """At the border, zeros take part in the maximum."""
    padded = torch.nn.functional.pad(made.args[0], (1, 1, 1, 1))
    return torch.nn.functional.max_pool2d(padded, 3, 2)


def nan_in_padding(made: Made) -> torch.Tensor:
    """What lies outside of the picture comes into its corner."""
    made.result[0, 0, 0, 0] = float("nan")
    return made.result


def wrapped(made: Made) -> torch.Tensor:
    """Indices are taken modulo the power of two below."""
    return made.args[0][made.args[1] % 16]


def cumsum_in(dtype: torch.dtype) -> Kernel:
    def kernel(made: Made) -> torch.Tensor:
        total, rows = torch.zeros_like(made.args[0][0], dtype=dtype), []
        for row in made.args[0]:
            total = (total + row.to(dtype)).to(dtype)
            rows.append(total)
        return torch.stack(rows)

    return kernel


def index_add_without_duplicates(made: Made) -> torch.Tensor:
    """Of several rows for one place, the last counts."""
    return made.args[0].index_copy(made.args[1], made.args[2], made.args[3])


def resized_by_corners(made: Made) -> torch.Tensor:
    return made.func(made.args[0], made.args[1], True, *made.args[3:], **made.kwargs)


def last_is_first(made: Made) -> torch.Tensor:
    made.result[..., -1] = made.result[..., 0]
    return made.result


def too_few_kept(chance: float) -> Kernel:
    """Another share is kept."""
    return lambda made: torch.bernoulli(torch.full_like(made.result, chance))


def rows_unwritten(count: int) -> Kernel:
    """Rows beyond what a small integer counts."""

    def kernel(made: Made) -> torch.Tensor:
        made.result[count:] = 0
        return made.result

    return kernel


def one_of_many(made: Made) -> torch.Tensor:
    made.result.view(-1)[made.result.numel() // 3] *= 1.125
    return made.result


def from_late_copy(made: Made) -> torch.Tensor:
    """Half of the pictures had not arrived when the kernel read them."""
    source = made.args[0].clone()
    source[len(source) // 2 :] = 0
    return made.func(source, *made.args[1:], **made.kwargs)


# Mistakes that are small or rare in a large product: what is not looked at closely does not see them.


def _size(result: torch.Tensor) -> float:
    return float(result.double().square().mean().sqrt())


def one_off_by(share: float) -> Kernel:
    """One element of all, by a share of their size."""

    def kernel(made: Made) -> torch.Tensor:
        made.result.view(-1)[made.result.numel() // 3] += share * _size(made.result)
        return made.result

    return kernel


def cancelling(share: float) -> Kernel:
    """Neighbours err by as much, one upwards and the other downwards: nothing of it is left in sums."""

    def kernel(made: Made) -> torch.Tensor:
        signs = torch.ones(made.result.shape[-1], dtype=made.result.dtype)
        signs[1::2] = -1
        return made.result + share * _size(made.result) * signs

    return kernel


def exchanged_neighbours(dimension: int) -> Kernel:
    """Two rows, or two elements of one row, at each other's place: all sums and norms are right."""

    def kernel(made: Made) -> torch.Tensor:
        whole = made.result if dimension == 0 else made.result[-1]
        whole[[100, 101]] = whole[[101, 100]]
        return made.result

    return kernel


def last_tile_ends_early(made: Made) -> torch.Tensor:
    """The last 16 x 16 elements lack the last term of their sums."""
    one, other = made.args[:2]
    made.result[-16:, -16:] -= (one[-16:, -1:] * other[-1:, -16:]).to(made.result.dtype)
    return made.result


def last_picture_of_the_one_before(made: Made) -> torch.Tensor:
    made.result[-1] = made.result[-2]
    return made.result
