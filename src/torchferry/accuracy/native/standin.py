"""What the compiled kernels do, with numpy: the same counts, the same checksum, figures to the last few bits."""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from torchferry.accuracy.native.library import COMPONENTS, DTYPES, NUMBERS
from torchferry.accuracy.native.sums import Scaled, Sums

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 14
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = (1 << 64) - 1
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


def values(array: Array, dtype: str) -> Array:
    """A flat array, as Record.array gives it, as float64; complex numbers as pairs."""
    return values_of(components(array, dtype), NUMBERS[dtype])


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
            keyed = block ^ (places * np.uint64(_STEP))
            products += int(((keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))).sum(dtype=np.uint64))
            words += int(block.sum(dtype=np.uint64))
    products, words = products & _WORD, words & _WORD
    mixed = ((products ^ products >> 29) * _FIRST + words * _SECOND + raw.size * _STEP) & _WORD
    mixed = ((mixed ^ mixed >> 30) * _FIRST) & _WORD
    return mixed ^ mixed >> 31


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
    """What the magnitudes of the differences tell; each is `times` its size."""
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
    """Sums of the differences, and of squares."""
    difference, exponent = _scaled(difference)
    found.bias.add(float(difference.sum()), exponent + halved)
    found.sum_abs.add(float(np.abs(difference).sum()), exponent + halved)
    found.errors.add(float(np.square(difference).sum()), 2 * (exponent + halved))
    (m, m_exponent), (g, g_exponent) = _scaled(m), _scaled(g)
    found.mine.add(float(np.square(m).sum()), 2 * m_exponent)
    found.golden.add(float(np.square(g).sum()), 2 * g_exponent)
    found.product.add(float((m * g).sum()), m_exponent + g_exponent)


def _add_units(found: Sums, m: Array, g: Array, number: int) -> None:
    """How many values of the dtype lie between."""
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
