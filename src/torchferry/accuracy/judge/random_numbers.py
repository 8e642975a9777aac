"""Judges what can't be computed again: whether random numbers are distributed as they should be, and whether what was
dropped is what the recorded mask says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchferry.text import Text

_DEVIATIONS = 7.0  # of a mean from what is expected: fewer than one false alarm in 10^11
OF_THE_WHOLE = ("aten::randperm", "aten::multinomial")  # parts of their results tell nothing
_CERTAIN, _DOUBTFUL = 1e-11, 1e-6  # chances that right numbers look so: of a fault, of what is suspicious
_LEAST = 32  # numbers; fewer tell nothing but their range
Arguments = Mapping[str, Any]
Results = list[torch.Tensor | None]
Problem = Callable[[str, Arguments, Results], Text | None]

_MEAN = Text(
    "the mean of {count} numbers is {found:.4g}, expected {right:.4g}",
    "{count} 个数的均值为 {found:.4g}，应为 {right:.4g}",
)
_SPREAD = Text(
    "the variance of {count} numbers is {found:.4g}, expected {right:.4g}",
    "{count} 个数的方差为 {found:.4g}，应为 {right:.4g}",
)
_RANGE = Text(
    "the numbers lie between {lowest:.4g} and {highest:.4g}, but should lie between {low:.4g} and {high:.4g}",
    "数值在 {lowest:.4g} 到 {highest:.4g} 之间，应在 {low:.4g} 到 {high:.4g} 之间",
)
_END = Text(
    "none of {count} numbers between {low:.4g} and {high:.4g} is {side} {end:.4g}, which has a "
    "probability of {chance:.0e}",
    "{low:.4g} 到 {high:.4g} 之间的 {count} 个数没有一个{side} {end:.4g}：这种情况的概率为 {chance:.0e}",
)
_ABOVE, _BELOW = Text("above", "大于"), Text("below", "小于")
_NOT_FINITE = Text("some random numbers are not finite", "随机数中有非有限值")
_NO_ORDER = Text("not a permutation", "不是一个排列")
_SLOPED = Text(
    "{wrong} of {count} elements are not the input times its slope",
    "{count} 个元素中有 {wrong} 个不等于输入乘以其斜率",
)
_MASKED = Text(
    "{wrong} of {count} elements are not the masked input",
    "{count} 个元素中有 {wrong} 个不等于掩码作用后的输入",
)


def is_known(operator: str) -> bool:
    """Whether the distribution of an operator, named aten::uniform_, is known here."""
    return operator in _JUDGES


def problem(operator: str, arguments: Arguments, results: Results) -> Text | None:
    """What is wrong with the results of a random operator, named aten::uniform_; None: nothing is."""
    return _JUDGES[operator](arguments, [result for result in results if result is not None])


def _moments(
    numbers: torch.Tensor, mean: float, variance: float, fourth: float, counted: torch.Tensor | bool = True
) -> Text | None:
    """`fourth`: the fourth central moment, by which a variance scatters; `counted`: which numbers are drawn at all."""
    values = numbers.to(torch.float64)
    values = values[torch.as_tensor(counted).expand_as(values) | ~values.isfinite()]
    count = values.numel()
    if not bool(values.isfinite().all()):
        return _NOT_FINITE
    if count < _LEAST:
        return None
    found = float(values.mean())
    digits = 2.0**-8 if numbers.dtype == torch.bfloat16 else 2.0**-10
    rounding = digits * (abs(mean) + math.sqrt(variance))
    if abs(found - mean) > _DEVIATIONS * math.sqrt(max(0.0, variance) / count) + rounding:
        return _MEAN.format(count=count, found=found, right=mean)
    spread = float(values.sub(mean).square().mean())
    scatter = _DEVIATIONS * math.sqrt(max(0.0, fourth - variance * variance) / count)
    if abs(spread - variance) > scatter + 0.02 * variance:
        return _SPREAD.format(count=count, found=spread, right=variance)
    return None


def _between(numbers: torch.Tensor, low: float, high: float) -> Text | None:
    if not numbers.numel():
        return None
    lowest, highest = float(numbers.min()), float(numbers.max())
    rounding = torch.finfo(numbers.dtype).eps if numbers.is_floating_point() else 0.0
    if lowest >= low - rounding * abs(low) and highest <= high + rounding * abs(high):
        return None
    return _RANGE.format(lowest=lowest, highest=highest, low=low, high=high)


def doubt(operator: str, arguments: Arguments, results: Results) -> Text | None:
    """What is strange about results in which no `problem` is certain: numbers that end before their range does."""
    found = [result for result in results if result is not None]
    if operator not in _UNIFORM or not found or not found[0].is_floating_point():
        return None
    return _ends(found[0], *_bounds(arguments), _DOUBTFUL)


def _even(numbers: torch.Tensor, low: float, high: float) -> Text | None:
    width = high - low
    return (
        _between(numbers, low, high)
        or _moments(numbers, (low + high) / 2, width**2 / 12, width**4 / 80)
        or _ends(numbers, low, high, _CERTAIN)
    )


def _ends(numbers: torch.Tensor, low: float, high: float, chance: float) -> Text | None:
    """Whether the numbers leave out an end of their range: so many would have come there that it is no chance."""
    count, width = numbers.numel(), high - low
    if not count or not width > 0.0:
        return None
    unit = 2.0 * torch.finfo(numbers.dtype).eps * max(abs(low), abs(high)) / width
    lowest, highest = float(numbers.min()), float(numbers.max())
    for side, end, part in (
        (_ABOVE, highest, (highest - low) / width),
        (_BELOW, lowest, (high - lowest) / width),
    ):
        likely = min(1.0, max(0.0, part + unit)) ** count  # that all lie in this part of the range
        if likely < chance:
            return _END.format(count=count, low=low, high=high, side=side, end=end, chance=likely)
    return None


def _bounds(given: Arguments) -> tuple[float, float]:
    return float(given.get("from", 0.0)), float(given.get("to", 1.0))


def _parts(numbers: torch.Tensor) -> torch.Tensor:
    """Both parts of complex numbers, which are drawn each by itself."""
    return torch.view_as_real(numbers.resolve_conj()) if numbers.is_complex() else numbers


def _uniform(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    return _even(_parts(results[0]), *_bounds(given))


def _normal(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    mean, deviation = given.get("mean", 0.0), given.get("std", 1.0)
    numbers = _parts(results[0]).to(torch.float64)
    if results[0].is_complex() and not isinstance(deviation, torch.Tensor):
        deviation = deviation / math.sqrt(2.0)  # the parts share the variance
    mean, deviation = (
        each.to(numbers.dtype) if isinstance(each, torch.Tensor) else float(each)
        for each in (mean, deviation)
    )
    away = numbers - mean
    # without any deviation, all are the mean
    deviations = (away / deviation).where(away != 0, torch.zeros_like(away))
    return _moments(deviations, 0.0, 1.0, 3.0, deviation != 0)


def _whole(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    numbers = results[0]
    low, high = given.get("low", given.get("from", 0)), given.get("high", given.get("to"))
    if high is None:
        return None
    low, count = low or 0, high - (low or 0)
    variance = (count**2 - 1) / 12
    fourth = variance * (3 * count**2 - 7) / 20
    middle = (low + high - 1) / 2
    return _between(numbers, low, high - 1) or _moments(numbers.double(), middle, variance, fourth)


def _permuted(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    order = results[0]
    return None if torch.equal(order.sort().values.long(), torch.arange(order.numel())) else _NO_ORDER


def _share(numbers: torch.Tensor, chance: float | torch.Tensor) -> Text | None:
    values = numbers.double()
    if not bool(((values == 0) | (values == 1)).all()):
        return _RANGE.format(lowest=float(values.min()), highest=float(values.max()), low=0, high=1)
    if isinstance(chance, torch.Tensor):
        expected = chance.double().expand_as(values)
        away = float((values - expected).sum())
        scatter = math.sqrt(max(0.0, float((expected * (1 - expected)).sum())))
        if abs(away) <= _DEVIATIONS * scatter + 1.0:
            return None
        return _MEAN.format(count=values.numel(), found=float(values.mean()), right=float(expected.mean()))
    variance = chance * (1 - chance)
    return _moments(values, chance, variance, variance * (1 - 3 * variance))


def _dropped(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    """The result is the input where the mask is set, over the chance to stay, exactly rounded."""
    chance = 0.0 if given.get("train") is False else given["p"]
    if not results[0].numel():
        return None
    result, mask = results[0], results[1]
    stays = 1.0 - chance
    right = given["input"].double() * mask.double() * (1.0 / stays if stays else 0.0)
    digits = {torch.float32: 2.0**-22, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
    limit = digits.get(result.dtype, 2.0**-22) * right.abs() + torch.finfo(result.dtype).tiny
    is_rounded = result == right.to(result.dtype)  # to infinity, too
    wrong = int((~is_rounded & ((result.double() - right).abs() > limit)).sum())
    if wrong:
        return _MASKED.format(wrong=wrong, count=result.numel())
    return _share(mask.double(), stays)


def _positive(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    rate = float(given.get("lambd", 1.0))
    numbers = results[0].double() * rate
    return _between(numbers, 0.0, math.inf) or _moments(numbers, 1.0, 1.0, 9.0)


def _heavy(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    """Cauchy's distribution has no moments: what its distribution function makes of the numbers is even."""
    median, width = float(given.get("median", 0.0)), float(given.get("sigma", 1.0))
    return _even(0.5 + torch.atan((results[0].double() - median) / width) / math.pi, 0.0, 1.0)


def _of_logarithm(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    mean, deviation = float(given.get("mean", 1.0)), float(given.get("std", 2.0))
    return _normal({"mean": mean, "std": deviation}, [results[0].double().log()])


def _tries(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    chance = float(given["p"])
    variance = (1.0 - chance) / chance**2
    fourth = variance * (9.0 * variance + 1.0)
    numbers = results[0].double()
    return _between(numbers, 1.0, math.inf) or _moments(numbers, 1.0 / chance, variance, fourth)


def _events(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    """Poisson's distribution, each number with its own rate, which is its variance as well."""
    numbers, rates = results[0].double(), given["self"].double()
    away, scatter = float((numbers - rates).sum()), math.sqrt(max(0.0, float(rates.sum())))
    if abs(away) > _DEVIATIONS * (scatter + 1.0) + 2.0**-8 * float(rates.sum()):
        return _MEAN.format(count=numbers.numel(), found=float(numbers.mean()), right=float(rates.mean()))
    return _between(numbers, 0.0, math.inf)


def _sloped(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    """What is not positive is multiplied by a random slope, which the operator leaves in its second result."""
    if not given.get("training") or len(results) < 2 or not results[0].numel():
        return None
    result, source, slopes = (each.double() for each in (results[0], given["self"], results[1]))
    limit = 2 * torch.finfo(results[0].dtype).eps
    right = torch.where(source > 0, source, source * slopes)
    wrong = int(((result - right).abs() > limit * source.abs()).sum())
    if wrong:
        return _SLOPED.format(wrong=wrong, count=result.numel())
    low, high = float(given.get("lower", 0.125)), float(given.get("upper", 1.0 / 3.0))
    return _even(results[1][results[0] < 0], low, high)


_UNIFORM = ("aten::uniform_", "aten::uniform", "aten::rand", "aten::rand_like")
_JUDGES: dict[str, Callable[[Arguments, list[torch.Tensor]], Text | None]] = {
    "aten::uniform_": _uniform, "aten::uniform": _uniform, "aten::rand": _uniform, "aten::rand_like": _uniform,
    "aten::normal_": _normal, "aten::normal": _normal, "aten::randn": _normal, "aten::randn_like": _normal,
    "aten::normal_functional": _normal,
    "aten::randint": _whole, "aten::randint_like": _whole, "aten::random_": _whole, "aten::random": _whole,
    "aten::randperm": _permuted,
    # the argument holds the chances unless there is one for all
    "aten::bernoulli": lambda given, results: _share(results[0], given["self" if given.get("p") is None else "p"]),
    "aten::bernoulli_": lambda given, results: _share(results[0], given.get("p", 0.5)),
    "aten::native_dropout": _dropped, "aten::_fused_dropout": _dropped, "aten::exponential_": _positive,
    "aten::exponential": _positive, "aten::cauchy_": _heavy, "aten::cauchy": _heavy,
    "aten::multinomial": lambda given, results: _between(results[0], 0, given["self"].shape[-1] - 1),
    "aten::log_normal_": _of_logarithm, "aten::log_normal": _of_logarithm, "aten::geometric_": _tries,
    "aten::geometric": _tries, "aten::poisson": _events, "aten::rrelu_with_noise": _sloped,
    "aten::rrelu_with_noise_": _sloped,
}  # fmt: skip
