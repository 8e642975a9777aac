"""Judges what can't be computed again: whether random numbers are distributed as they should be, and whether what was
dropped is what the recorded mask says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchferry.text import Text

_DEVIATIONS = 7.0  # of a mean from what is expected: fewer than one false alarm in 10^11
_LEAST = 32  # numbers; fewer tell nothing but their range
Arguments = Mapping[str, Any]
Results = list[torch.Tensor | None]

_MEAN = Text(
    "the mean of {count} numbers is {found:.4g}, not {right:.4g}",
    "{count} 个数的均值为 {found:.4g}，应为 {right:.4g}",
)
_SPREAD = Text(
    "the variance of {count} numbers is {found:.4g}, not {right:.4g}",
    "{count} 个数的方差为 {found:.4g}，应为 {right:.4g}",
)
_RANGE = Text(
    "numbers lie between {lowest:.4g} and {highest:.4g}: they should be between {low:.4g} and {high:.4g}",
    "数值在 {lowest:.4g} 到 {highest:.4g} 之间，应在 {low:.4g} 到 {high:.4g} 之间",
)
_NOT_FINITE = Text("random numbers are not finite", "随机数中有非有限值")
_NO_ORDER = Text("it is no permutation", "不是一个排列")
_MASKED = Text(
    "{wrong} of {count} elements are not what the mask leaves of the input",
    "{count} 个元素中有 {wrong} 个不等于掩码作用后的输入",
)


def is_known(operator: str) -> bool:
    """Whether the distribution of an operator, named aten::uniform_, is known here."""
    return operator in _JUDGES


def problem(operator: str, arguments: Arguments, results: Results) -> Text | None:
    """What is wrong with the results of a random operator, named aten::uniform_; None: nothing is."""
    return _JUDGES[operator](arguments, [result for result in results if result is not None])


def _moments(numbers: torch.Tensor, mean: float, variance: float, fourth: float) -> Text | None:
    """`fourth`: the fourth central moment, by which a variance scatters."""
    values = numbers.to(torch.float64).reshape(-1)
    count = values.numel()
    if not bool(values.isfinite().all()):
        return _NOT_FINITE
    if count < _LEAST:
        return None
    found = float(values.mean())
    digits = 2.0**-8 if numbers.dtype == torch.bfloat16 else 2.0**-10
    if abs(found - mean) > _DEVIATIONS * math.sqrt(max(0.0, variance) / count) + digits * (
        abs(mean) + math.sqrt(variance)
    ):
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
    if lowest >= low and highest <= high:
        return None
    return _RANGE.format(lowest=lowest, highest=highest, low=low, high=high)


def _even(numbers: torch.Tensor, low: float, high: float) -> Text | None:
    width = high - low
    return _between(numbers, low, high) or _moments(numbers, (low + high) / 2, width**2 / 12, width**4 / 80)


def _uniform(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    return _even(results[0], float(given.get("from", 0.0)), float(given.get("to", 1.0)))


def _normal(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    mean, deviation = given.get("mean", 0.0), given.get("std", 1.0)
    numbers = results[0].to(torch.float64)
    mean, deviation = (
        each.to(numbers.dtype) if isinstance(each, torch.Tensor) else float(each)
        for each in (mean, deviation)
    )
    return _moments((numbers - mean) / deviation, 0.0, 1.0, 3.0)


def _whole(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    numbers = results[0]
    low, high = given.get("low", given.get("from", 0)), given.get("high", given.get("to"))
    if high is None:
        return None
    return _between(numbers, low or 0, high - 1) or _even(numbers.double() + 0.5, low or 0, high)


def _permuted(_: Arguments, results: list[torch.Tensor]) -> Text | None:
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
        count = values.numel()
        is_off = abs(away) > _DEVIATIONS * scatter + 1.0
        return (
            _MEAN.format(count=count, found=float(values.mean()), right=float(expected.mean()))
            if is_off
            else None
        )
    variance = chance * (1 - chance)
    return _moments(values, chance, variance, variance * (1 - 3 * variance))


def _heads(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    """Of bernoulli, whose argument holds the chances unless there is one for all."""
    return _share(results[0], given["self"] if given.get("p") is None else given["p"])


def _filled_with_heads(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    return _share(results[0], given.get("p", 0.5))


def _dropped(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    """The result is the input where the mask is set, over the chance to stay, exactly rounded."""
    chance = given["p"]
    if given.get("train") is False or not results[0].numel():
        return None
    result, mask = results[0], results[1]
    stays = 1.0 - chance
    right = given["input"].double() * mask.double() * (1.0 / stays if stays else 0.0)
    digits = {torch.float32: 2.0**-22, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
    wrong = int(((result.double() - right).abs() > digits.get(result.dtype, 2.0**-22) * right.abs()).sum())
    if wrong:
        return _MASKED.format(wrong=wrong, count=result.numel())
    return _share(mask.double(), stays)


def _positive(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    rate = float(given.get("lambd", 1.0))
    numbers = results[0].double() * rate
    return _between(numbers, 0.0, math.inf) or _moments(numbers, 1.0, 1.0, 9.0)


def _chosen(given: Arguments, results: list[torch.Tensor]) -> Text | None:
    return _between(results[0], 0, given["self"].shape[-1] - 1)


_JUDGES: dict[str, Callable[[Arguments, list[torch.Tensor]], Text | None]] = {
    "aten::uniform_": _uniform, "aten::uniform": _uniform, "aten::rand": _uniform, "aten::rand_like": _uniform,
    "aten::normal_": _normal, "aten::normal": _normal, "aten::randn": _normal, "aten::randn_like": _normal,
    "aten::normal_functional": _normal,
    "aten::randint": _whole, "aten::randint_like": _whole, "aten::random_": _whole, "aten::random": _whole,
    "aten::randperm": _permuted, "aten::bernoulli_": _filled_with_heads, "aten::bernoulli": _heads,
    "aten::native_dropout": _dropped, "aten::_fused_dropout": _dropped, "aten::exponential_": _positive,
    "aten::exponential": _positive, "aten::multinomial": _chosen,
}  # fmt: skip
