"""What the compiled kernels do, with numpy: the same counts, the same checksum, figures to the last few bits."""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torchferry.accuracy.model import Metrics
from torchferry.accuracy.native.library import CHECKSUM_STEP, COMPONENTS, DTYPES, mixed_checksum

# Sums over pairs of elements, as both implementations gather them, and the figures that follow from
# them.

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
    """The struct Sums of csrc/differences.cpp."""

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
        relative_euclidean = 0.0 if self.errors.value == 0 else math.inf
        if self.errors.value and self.golden.value:
            ratio = math.sqrt(self.errors.value) / math.sqrt(self.golden.value)
            relative_euclidean = _ldexp(ratio, (self.errors.exponent - self.golden.exponent) // 2)
        cosine = 1.0 if self.mine.value == self.golden.value else 0.0
        if self.mine.value and self.golden.value:
            product = self.product.value / (math.sqrt(self.mine.value) * math.sqrt(self.golden.value))
            exponent = self.product.exponent - (self.mine.exponent + self.golden.exponent) // 2
            cosine = max(-1.0, min(1.0, _ldexp(product, exponent)))
        return {
            "max_abs": self.max_abs,
            "max_rel": self._relative(self.max_rel),
            "mean_abs": _ldexp(self.sum_abs.value / self.finite, self.sum_abs.exponent),
            "mean_rel": self._relative(self.sum_rel / max(self.relative, 1)),
            "rms_rel": self._relative(math.sqrt(self.squares_rel / max(self.relative, 1))),
            "rms_error": _root(self.errors, self.finite),
            "relative_euclidean": relative_euclidean,
            "cosine": cosine,
            "bias": _ldexp(self.bias.value / self.finite, self.bias.exponent),
            "max_ulp": self.max_ulp,
            "mean_ulp": self.sum_ulp / self.finite,
        }

    def _relative(self, figure: float) -> float:
        """nan where golden is all-zero and mine is not: nothing was left to be relative to."""
        return _NAN if self.relative == 0 and self.wrong_zeros else figure


_ERRORS = (
    "max_abs", "max_rel", "mean_abs", "mean_rel", "rms_rel", "rms_error", "relative_euclidean", "cosine", "bias",
    "max_ulp", "mean_ulp",
)  # fmt: skip


def _root(squares: Scaled, count: int) -> float:
    return _ldexp(math.sqrt(squares.value / count), squares.exponent // 2)


def _ldexp(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


Array = np.ndarray[Any, Any]

_BLOCK = 1 << 14
# How the elements of a dtype lie in memory; those that numpy does not know lie as integers.
_LYING: dict[str, Any] = {
    "bool": np.uint8, "bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8,
    "float8_e4m3fnuz": np.uint8, "float8_e5m2fnuz": np.uint8,
}  # fmt: skip


def components(array: Array, dtype: str) -> Array:
    """A flat array as the kernels take it: in memory order, complex numbers as pairs, unknown sorts as integers."""
    name = COMPONENTS.get(dtype, dtype)
    flat: Array = np.ascontiguousarray(array).reshape(-1)
    return flat.view(_LYING.get(name, name))


def values_of(raw: Array, number: int) -> Array:
    """Elements as float64; 64-bit integers are rounded."""
    name = DTYPES[number]
    if name == "bool":
        truth: Array = raw != 0
        return truth.astype(np.float64)
    if name == "bfloat16":
        wide: Array = raw.astype(np.uint32) << 16
        raw = wide.view(np.float32)
    if name.startswith("float8"):
        table: Array = float8_values(name)[raw]
        return table
    with np.errstate(invalid="ignore"):  # a nan that signals
        return raw.astype(np.float64)


@functools.cache
def float8_values(name: str) -> Array:
    """The value of each of the 256 patterns."""
    wide = "e5m2" in name
    finite_only = name.endswith("fnuz")
    mantissa_bits, bias = (2, 15 + finite_only) if wide else (3, 7 + finite_only)
    found = []
    for bits in range(256):
        sign, magnitude = (-1.0 if bits & 0x80 else 1.0), bits & 0x7F
        exponent, mantissa = magnitude >> mantissa_bits, magnitude % (1 << mantissa_bits)
        lead, shift = (0, 1) if exponent == 0 else (1 << mantissa_bits, exponent)
        value = sign * math.ldexp(lead + mantissa, shift - bias - mantissa_bits)
        if name == "float8_e5m2" and magnitude == 0x7C:
            value = sign * math.inf
        elif bits == 0x80 if finite_only else magnitude > (0x7C if wide else 0x7E):
            value = math.nan
        found.append(value)
    return np.array(found)


# --- statistics


def statistics_at(address: int, number: int, count: int, row: int) -> None:
    """Of dense memory, into the 72 bytes at `row`."""
    name = DTYPES[number]
    lying = np.dtype(_LYING.get(name, name))
    memory = (ctypes.c_char * (count * lying.itemsize)).from_address(address) if count else b""
    raw = np.frombuffer(memory, lying)
    counts = np.zeros(4, np.uint64)  # count, nans, infinities, zeros
    lowest, highest = math.inf, -math.inf
    total, squares = Scaled(), Scaled()
    for start in range(0, count, _BLOCK):
        values = values_of(raw[start : start + _BLOCK], number)
        finite = np.isfinite(values)
        nans = int(np.isnan(values).sum())
        counts += np.array(
            [values.size, nans, values.size - finite.sum() - nans, (values == 0).sum()], np.uint64
        )
        values = values[finite]
        if values.size:
            lowest, highest = min(lowest, float(values.min())), max(highest, float(values.max()))
        scaled, exponent = _scaled(values)
        total.add(float(scaled.sum()), exponent)
        squares.add(float(np.square(scaled).sum()), 2 * exponent)
    finite_count = int(counts[0] - counts[1] - counts[2])
    figures = np.zeros(4)
    if finite_count:
        mean = math.ldexp(total.value / finite_count, total.exponent)
        rms = math.ldexp(math.sqrt(squares.value / finite_count), squares.exponent // 2)
        figures[:] = lowest, highest, mean, rms
    found = counts.tobytes() + figures.tobytes() + checksum(raw.view(np.uint8)).to_bytes(8, "little")
    ctypes.memmove(row, found, len(found))


def checksum(raw: Array) -> int:
    """Of bytes, in words of eight: one sum feels the place of each word, the other any change of a single one."""
    products = words = 0
    with np.errstate(over="ignore"):
        for start in range(0, raw.size, 8 * _BLOCK):
            piece = raw[start : start + 8 * _BLOCK]
            if piece.size % 8:
                piece = np.concatenate([piece, np.zeros(-piece.size % 8, np.uint8)])
            block = np.frombuffer(piece.tobytes(), np.uint64)
            places = np.arange(start // 8 + 1, start // 8 + 1 + block.size, dtype=np.uint64)
            keyed = block ^ (places * np.uint64(CHECKSUM_STEP))
            products += int(((keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))).sum(dtype=np.uint64))
            words += int(block.sum(dtype=np.uint64))
    return mixed_checksum(products, words, raw.size)


def _scaled(values: Array) -> tuple[Array, int]:
    """Divided by a power of two where their squares would overflow or vanish, and its exponent."""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if largest == 0 or 2.0**-340 < largest < 2.0**440:
        return values, 0
    exponent = math.frexp(largest)[1]
    return np.ldexp(values, -exponent), exponent


# --- differences


def differences_of(mine: Array, golden: Array, mine_number: int, golden_number: int) -> Sums:
    """Sums over pairs of components."""
    total = Sums()
    for start in range(0, mine.size, _BLOCK):
        stop = start + _BLOCK
        total.add(_block(mine[start:stop], golden[start:stop], mine_number, golden_number))
    return total


def _block(mine: Array, golden: Array, mine_number: int, golden_number: int) -> Sums:
    m, g = values_of(mine, mine_number), values_of(golden, golden_number)
    finite = np.isfinite(m) & np.isfinite(g)
    with np.errstate(invalid="ignore"):
        same = ~finite & ((m == g) | (np.isnan(m) & np.isnan(g)))
    wrong = ~finite & ~same
    found = Sums(
        count=m.size,
        finite=int(finite.sum()),
        wrong_nonfinite=int(wrong.sum()),
        nans=int(np.isnan(m).sum()),
        infinities=int(np.isinf(m).sum()),
        zeros=int((m == 0).sum()),
        golden_zeros=int((g == 0).sum()),
        first_nonfinite=int(wrong.argmax()) if wrong.any() else -1,
    )
    places = np.flatnonzero(finite)
    m, g = m[places], g[places]
    difference, halved = _subtracted(mine[places], golden[places], m, g)
    _add_sizes(found, np.abs(difference), 2.0**halved, m, g, places)
    _add_products(found, difference, halved, m, g)
    agreeing = int(same.sum())
    found.equal += agreeing
    found.within_thousandth += agreeing
    found.within_five += agreeing
    if DTYPES[golden_number].startswith(("float", "bfloat")):
        _add_units(found, m, g, golden_number)
    return found


def _subtracted(mine: Array, golden: Array, m: Array, g: Array) -> tuple[Array, int]:
    """The differences, and 1 if they are halved because a whole one is too large.

    64-bit integers are subtracted before they are rounded.
    """
    if mine.dtype == golden.dtype and mine.dtype in (np.int64, np.uint64):
        less = mine < golden
        x, y = mine.view(np.uint64), golden.view(np.uint64)
        size = np.where(less, y - x, x - y).astype(np.float64)
        return np.where(less, -size, size), 0
    with np.errstate(over="ignore"):
        difference = m - g
    return (difference, 0) if np.isfinite(difference).all() else (m * 0.5 - g * 0.5, 1)


def _add_sizes(found: Sums, sizes: Array, times: float, m: Array, g: Array, places: Array) -> None:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        relative = (sizes / np.abs(g))[g != 0] * times
        sizes = sizes * times
        found.squares_rel = float(np.square(relative).sum())
    found.equal = int((sizes == 0).sum())
    found.relative = relative.size
    found.wrong_zeros = int(((g == 0) & (m != 0)).sum())
    right_zeros = int(((g == 0) & (m == 0)).sum())
    found.within_thousandth = int((relative < 1e-3).sum()) + right_zeros
    found.within_five = int((relative < 5e-3).sum()) + right_zeros
    found.sum_rel = float(relative.sum())
    found.max_rel = float(relative.max(initial=0.0))
    found.max_abs = float(sizes.max(initial=0.0))
    if found.max_abs:
        found.worst = int(places[sizes.argmax()])


def _add_products(found: Sums, difference: Array, halved: int, m: Array, g: Array) -> None:
    difference, exponent = _scaled(difference)
    found.bias.add(float(difference.sum()), exponent + halved)
    found.sum_abs.add(float(np.abs(difference).sum()), exponent + halved)
    found.errors.add(float(np.square(difference).sum()), 2 * (exponent + halved))
    (m, m_exponent), (g, g_exponent) = _scaled(m), _scaled(g)
    found.mine.add(float(np.square(m).sum()), 2 * m_exponent)
    found.golden.add(float(np.square(g).sum()), 2 * g_exponent)
    found.product.add(float((m * g).sum()), m_exponent + g_exponent)


def _add_units(found: Sums, m: Array, g: Array, number: int) -> None:
    x, y = _in_order(m, number), _in_order(g, number)
    distance = np.where(x < y, y.view(np.uint64) - x.view(np.uint64), x.view(np.uint64) - y.view(np.uint64))
    found.max_ulp = float(distance.max(initial=0))
    found.sum_ulp = float(distance.astype(np.float64).sum())


def _in_order(values: Array, number: int) -> Array:
    """Numbers that grow with the values, one for each value of the dtype."""
    name = DTYPES[number]
    with np.errstate(over="ignore", under="ignore"):
        if name.startswith("float8"):
            return _float8_in_order(values, name)
        if name == "bfloat16":
            bits = values.astype(np.float32).view(np.uint32).astype(np.int64)
            magnitude = ((bits & 0x7FFFFFFF) + 0x7FFF + (bits >> 16 & 1)) >> 16
            return np.where(bits >> 31, -magnitude, magnitude)
        if name == "float16":
            bits = values.astype(np.float32).astype(np.float16).view(np.int16).astype(np.int64)
            return np.where(bits < 0, -(1 << 15) - bits, bits)
        if name == "float32":
            bits = values.astype(np.float32).view(np.int32).astype(np.int64)
            return np.where(bits < 0, -(1 << 31) - bits, bits)
    bits = values.view(np.int64)
    return np.where(bits < 0, np.int64(-(1 << 63)) - bits, bits)


def _float8_in_order(values: Array, name: str) -> Array:
    """The nearest finite one, with the even one at ties."""
    table = float8_values(name)[:128]
    table = table[np.isfinite(table)]
    sizes = np.abs(values.astype(np.float32).astype(np.float64))
    high = np.clip(np.searchsorted(table, sizes, side="right"), 1, table.size - 1)
    low = high - 1
    below, above = sizes - table[low], table[high] - sizes
    nearest = np.where((below < above) | ((below == above) & (low % 2 == 0)), low, high).astype(np.int64)
    return np.where(values < 0, -nearest, nearest)


def marks_of(
    mine: Array, golden: Array, mine_number: int, golden_number: int, relative: float, floor: float
) -> Array:
    """0 for right, 1 for wrong, 2 for nan or infinity in one and something else in the other."""
    marks = np.empty(mine.size, np.uint8)
    for start in range(0, mine.size, _BLOCK):
        x, y = mine[start : start + _BLOCK], golden[start : start + _BLOCK]
        m, g = values_of(x, mine_number), values_of(y, golden_number)
        finite = np.isfinite(m) & np.isfinite(g)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = np.abs(m - g) > np.maximum(relative * np.abs(g), floor)
            if relative == floor == 0 and x.dtype == y.dtype:
                wrong = x != y
            same = (m == g) | (np.isnan(m) & np.isnan(g))
        marks[start : start + _BLOCK] = np.where(finite, wrong, 2 * ~same)
    return marks
