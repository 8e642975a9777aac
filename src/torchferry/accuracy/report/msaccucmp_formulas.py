"""The formulas of the vendors' `msaccucmp`, in two passes over blocks of two tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
NAN = "NaN"
_EPSILON = 2.0**-52  # below it, a golden value counts as zero
_SINGLE_EPSILON = 2.0**-23  # the least that a normalised value can be
_SMALL = 0.001  # what StandardDeviation shows as 0
_BLOCK = 1 << 18
_NO_COSINE = "Cannot compare by Cosine Similarity. All the data is zero in {path}."


@dataclass(frozen=True)
class Blocks:
    """Two flat arrays as records hold them, elements of one place belonging together."""

    mine: Array
    golden: Array
    mine_dtype: str
    golden_dtype: str

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        """As float64, in small parts."""
        for start in range(0, self.mine.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            yield _values(self.mine[part], self.mine_dtype), _values(self.golden[part], self.golden_dtype)


def _values(array: Array, dtype: str) -> Array:
    """Complex numbers count as two."""
    from torchferry.accuracy.native.library import COMPONENTS, NUMBERS
    from torchferry.accuracy.native.standin import components, values_of

    return values_of(components(array, dtype), NUMBERS[COMPONENTS.get(dtype, dtype)])


def figures_of(blocks: Blocks, *, is_scalar: bool, paths: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """All ten figures as texts, and what could not be computed."""
    with np.errstate(all="ignore"):
        sums = _Sums()
        for mine, golden in blocks:
            sums.add(mine, golden)
        divergence = _divergence(blocks, sums)
    cosine, reasons = _cosine(sums, is_scalar, paths)
    euclidean = (
        0.0 if math.sqrt(sums.golden_squares) <= _EPSILON else math.sqrt(sums.squares / sums.golden_squares)
    )
    figures = {
        "CosineSimilarity": cosine,
        "MaxAbsoluteError": _shown(sums.max_abs),
        "AccumulatedRelativeError": _shown(sums.relative),
        "RelativeEuclideanDistance": _shown(euclidean),
        "KullbackLeiblerDivergence": _shown(0.0 if abs(divergence) < _EPSILON else divergence),
        "StandardDeviation": _deviations(sums),
        "MeanAbsoluteError": _shown(sums.absolute / sums.count),
        "RootMeanSquareError": _shown(math.sqrt(sums.squares / sums.count)),
        "MaxRelativeError": _shown(sums.max_relative),
        "MeanRelativeError": _shown(sums.relative / sums.count),
    }
    return figures, reasons


class _Sums:
    """The first pass."""

    def __init__(self) -> None:
        self.count = 0
        self.absolute = self.max_abs = self.squares = self.relative = self.max_relative = 0.0
        self.products = self.mine_squares = self.golden_squares = self.mine_sum = self.golden_sum = 0.0
        self.mine_range, self.golden_range = (math.inf, -math.inf), (math.inf, -math.inf)

    def add(self, mine: Array, golden: Array) -> None:
        errors = np.abs(mine - golden)
        relative = np.where(np.abs(golden) > _EPSILON, np.abs(mine / golden - 1), 0)
        self.count += mine.size
        self.absolute += float(errors.sum())
        self.max_abs = _largest(self.max_abs, float(errors.max()))
        self.squares += float((errors**2).sum())
        self.relative += float(relative.sum())
        self.max_relative = _largest(self.max_relative, float(relative.max()))
        self.products += float(mine @ golden)
        self.mine_squares += float(mine @ mine)
        self.golden_squares += float(golden @ golden)
        self.mine_sum += float(mine.sum())
        self.golden_sum += float(golden.sum())
        self.mine_range = _range(self.mine_range, mine)
        self.golden_range = _range(self.golden_range, golden)


def _range(known: tuple[float, float], values: Array) -> tuple[float, float]:
    return -_largest(-known[0], -float(values.min())), _largest(known[1], float(values.max()))


def _largest(one: float, other: float) -> float:
    """As numpy has it: nan if one is."""
    return math.nan if math.isnan(one) or math.isnan(other) else max(one, other)


def _cosine(sums: _Sums, is_scalar: bool, paths: Sequence[str]) -> tuple[str, list[str]]:
    if is_scalar:
        return _shown(1.0), ["This tensor is scalar."]
    norms = [math.sqrt(sums.mine_squares), math.sqrt(sums.golden_squares)]
    if norms[0] <= _EPSILON and norms[1] < _EPSILON:
        return "1.0", []
    for norm, path in zip(norms, paths, strict=True):
        if math.sqrt(norm) <= _EPSILON:
            return NAN, [_NO_COSINE.format(path=path)]
    result = sums.products / (norms[0] * norms[1])
    return _shown(min(result, 1.0)), []


def _divergence(blocks: Blocks, sums: _Sums) -> float:
    """Of Kullback and Leibler, of the values taken to [0, 1] and divided by their sum."""
    mine_sum = golden_sum = total = 0.0
    for mine, golden in blocks:
        p, q = _normalised(mine, sums.mine_range), _normalised(golden, sums.golden_range)
        mine_sum += float(p.sum())
        golden_sum += float(q.sum())
        total += float((p * np.log(p / q)).sum())
    return total / mine_sum + math.log(golden_sum / mine_sum) if mine_sum and golden_sum else math.nan


def _normalised(values: Array, limits: tuple[float, float]) -> Array:
    low, high = limits
    normal = (values - low) / (high - low) if high != low else values
    return np.maximum(normal, _SINGLE_EPSILON)


def _deviations(sums: _Sums) -> str:
    """Mean and standard deviation of both."""
    shown = []
    for total, squares in ((sums.mine_sum, sums.mine_squares), (sums.golden_sum, sums.golden_squares)):
        mean = total / sums.count
        deviation = math.sqrt(max(squares / sums.count - mean**2, 0.0))
        shown.append(";".join(f"{0.0 if abs(each) < _SMALL else each:.3f}" for each in (mean, deviation)))
    return ",".join(f"({each})" for each in shown)


def _shown(value: float) -> str:
    return f"{value:.6f}"
