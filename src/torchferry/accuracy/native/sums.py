"""Sums over pairs of elements, as both implementations gather them, and the figures that follow from them."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field
from typing import Any

from torchferry.accuracy.compare.model import Metrics

_COUNTS = (
    "count", "equal", "finite", "relative", "wrong_zeros", "wrong_nonfinite", "nans", "infinities", "zeros",
    "golden_zeros", "within_thousandth", "within_five",
)  # fmt: skip
_ADDED = ("sum_rel", "squares_rel", "sum_ulp")
_LARGEST = ("max_rel", "max_ulp")
_SCALED = ("bias", "sum_abs", "errors", "mine", "golden", "product")
_FIGURES = ("max_abs", "max_rel", "sum_rel", "squares_rel", "max_ulp", "sum_ulp")
_NAN = math.nan


class CSums(ctypes.Structure):
    """As csrc/differences.cpp has it."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in _COUNTS),
        ("worst", ctypes.c_int64),
        ("first_nonfinite", ctypes.c_int64),
        *((name, ctypes.c_double) for name in _FIGURES),
        *(
            (f"{name}_{part}", sort)
            for name in _SCALED
            for part, sort in (("value", ctypes.c_double), ("exponent", ctypes.c_int64))
        ),
    ]


@dataclass
class Scaled:
    """value * 2**exponent: squares of 1e300 and of 1e-300 can be added up."""

    value: float = 0.0
    exponent: int = 0

    def add(self, value: float, exponent: int) -> None:
        """Add a number, in the larger of the two scales."""
        if value == 0:
            return
        if self.value == 0:
            self.value, self.exponent = value, exponent
        elif exponent <= self.exponent:
            self.value += math.ldexp(value, exponent - self.exponent)
        else:
            self.value = value + math.ldexp(self.value, self.exponent - exponent)
            self.exponent = exponent


@dataclass
class Sums:
    """Of a piece of two tensors, or of all pieces so far. Positions count from the start of the first piece."""

    count: int = 0
    equal: int = 0
    finite: int = 0  # pairs of which both are finite; the figures are of these
    relative: int = 0  # of those, the ones whose golden value is not 0
    wrong_zeros: int = 0
    wrong_nonfinite: int = 0
    nans: int = 0
    infinities: int = 0
    zeros: int = 0
    golden_zeros: int = 0
    within_thousandth: int = 0
    within_five: int = 0
    worst: int = -1
    first_nonfinite: int = -1
    max_abs: float = 0.0
    max_rel: float = 0.0
    sum_rel: float = 0.0
    squares_rel: float = 0.0
    max_ulp: float = 0.0
    sum_ulp: float = 0.0
    bias: Scaled = field(default_factory=Scaled)
    sum_abs: Scaled = field(default_factory=Scaled)
    errors: Scaled = field(default_factory=Scaled)
    mine: Scaled = field(default_factory=Scaled)
    golden: Scaled = field(default_factory=Scaled)
    product: Scaled = field(default_factory=Scaled)

    @classmethod
    def of_c(cls, found: CSums) -> Sums:
        """What the compiled kernel has found."""
        plain: dict[str, Any] = {
            name: getattr(found, name) for name in (*_COUNTS, "worst", "first_nonfinite", *_FIGURES)
        }
        scaled: dict[str, Any] = {
            name: Scaled(getattr(found, f"{name}_value"), getattr(found, f"{name}_exponent"))
            for name in _SCALED
        }
        return cls(**plain, **scaled)

    def add(self, piece: Sums) -> None:
        """Append the next piece."""
        start = self.count
        if piece.max_abs > self.max_abs:
            self.max_abs, self.worst = piece.max_abs, start + piece.worst
        if self.first_nonfinite < 0 <= piece.first_nonfinite:
            self.first_nonfinite = start + piece.first_nonfinite
        for name in (*_COUNTS, *_ADDED):
            setattr(self, name, getattr(self, name) + getattr(piece, name))
        for name in _LARGEST:
            setattr(self, name, max(getattr(self, name), getattr(piece, name)))
        for name in _SCALED:
            other = getattr(piece, name)
            getattr(self, name).add(other.value, other.exponent)

    def metrics(self, golden_is_integer: bool) -> Metrics:
        """The figures; see Metrics for what they leave out.

        An all-zero golden has an infinite relative distance unless mine is all-zero too. The cosine of two all-zero
        tensors is 1, of one with any other 0: a limit on it then decides as it should. Without one pair of finite
        elements, there are no figures at all.
        """
        errors = self._errors() if self.finite else dict.fromkeys(_ERRORS, _NAN)
        if golden_is_integer:
            errors |= {"max_ulp": errors["max_abs"], "mean_ulp": errors["mean_abs"]}
        return Metrics(
            count=self.count,
            equal=self.equal,
            within_thousandth=self.within_thousandth / self.count if self.count else _NAN,
            within_five_thousandths=self.within_five / self.count if self.count else _NAN,
            wrong_zeros=self.wrong_zeros,
            wrong_nonfinite=self.wrong_nonfinite,
            nans=self.nans,
            infinities=self.infinities,
            zeros=self.zeros,
            golden_zeros=self.golden_zeros,
            worst=self.first_nonfinite if self.first_nonfinite >= 0 else self.worst,
            **errors,
        )

    @property
    def golden_rms(self) -> float:
        """Root mean square of golden, where both are finite."""
        return _root(self.golden, self.finite) if self.finite else 0.0

    def _errors(self) -> dict[str, float]:
        return {
            "max_abs": self.max_abs,
            "max_rel": self._relative(self.max_rel),
            "mean_abs": _ldexp(self.sum_abs.value / self.finite, self.sum_abs.exponent),
            "mean_rel": self._relative(self.sum_rel / max(self.relative, 1)),
            "rms_rel": self._relative(math.sqrt(self.squares_rel / max(self.relative, 1))),
            "rms_error": _root(self.errors, self.finite),
            "relative_euclidean": self._relative_euclidean(),
            "cosine": self._cosine(),
            "bias": _ldexp(self.bias.value / self.finite, self.bias.exponent),
            "max_ulp": self.max_ulp,
            "mean_ulp": self.sum_ulp / self.finite,
        }

    def _relative(self, figure: float) -> float:
        """nan where golden is all-zero and mine is not: nothing was left to be relative to."""
        return _NAN if self.relative == 0 and self.wrong_zeros else figure

    def _relative_euclidean(self) -> float:
        if self.errors.value == 0:
            return 0.0
        if self.golden.value == 0:
            return math.inf
        ratio = math.sqrt(self.errors.value) / math.sqrt(self.golden.value)
        return _ldexp(ratio, (self.errors.exponent - self.golden.exponent) // 2)

    def _cosine(self) -> float:
        if self.mine.value == 0 or self.golden.value == 0:
            return 1.0 if self.mine.value == self.golden.value else 0.0
        cosine = self.product.value / (math.sqrt(self.mine.value) * math.sqrt(self.golden.value))
        exponent = self.product.exponent - (self.mine.exponent + self.golden.exponent) // 2
        return max(-1.0, min(1.0, _ldexp(cosine, exponent)))


_ERRORS = (
    "max_abs", "max_rel", "mean_abs", "mean_rel", "rms_rel", "rms_error", "relative_euclidean", "cosine", "bias",
    "max_ulp", "mean_ulp",
)  # fmt: skip


def _root(squares: Scaled, count: int) -> float:
    """Root of the mean."""
    return _ldexp(math.sqrt(squares.value / count), squares.exponent // 2)


def _ldexp(value: float, exponent: int) -> float:
    """value * 2**exponent; infinite where that is too large."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)
