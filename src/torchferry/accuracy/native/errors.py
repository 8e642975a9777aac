"""How far results are from the right ones, against a limit for each element: sums in one pass, by a compiled kernel."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from torchferry.accuracy.native.library import NUMBERS, library

_TABLE_BYTES = 1 << 16


class CLimits(ctypes.Structure):
    """What a limit is made of; csrc/errors.cpp says what each field means."""

    _fields_ = [
        (name, ctypes.c_double)
        for name in (
            "digits", "least_half", "half_of_zero", "rounding", "share", "tiny", "unit", "floor", "exactly",
            "smallest_normal", "largest_finite", "rms_compute", "rms_rounding", "bias_rounding", "bias_compute",
        )
    ]  # fmt: skip


class CErrorSums(ctypes.Structure):
    """Over all elements, in shares of their limits; the last two as they are."""

    _fields_ = [
        (name, ctypes.c_double)
        for name in (
            "nonfinite", "counted", "largest", "found", "expected", "away", "along", "away_squares", "along_squares",
            "allowed", "error_squares", "right_squares",
        )
    ]  # fmt: skip
    nonfinite: float
    counted: float
    largest: float
    found: float
    expected: float
    away: float
    along: float
    away_squares: float
    along_squares: float
    allowed: float
    error_squares: float
    right_squares: float


def error_sums(
    mine: tuple[int, str], right: tuple[int, str], moved: int, unrounded: int, count: int, limits: CLimits
) -> CErrorSums | None:
    """Of dense memory: addresses with dtypes; `moved` is an address of doubles or 0, `unrounded` one of what `right`
    has. None: there is no compiler here."""
    kernels = _kernels()
    if kernels is None:
        return None
    found = CErrorSums()
    kernels[0](
        mine[0], NUMBERS[mine[1]], right[0], NUMBERS[right[1]], moved or None, unrounded or None, count,
        ctypes.byref(limits), ctypes.byref(found),
    )  # fmt: skip
    return found


def different_values(address: int, dtype: str, count: int, step: int) -> float:
    """About how many different values every `step`-th element has; there must be a compiler."""
    kernels = _kernels()
    assert kernels is not None
    found: float = kernels[1](address, NUMBERS[dtype], count, step, _table())
    return found


_OWN = threading.local()


def _table() -> Any:
    """Memory that each thread has for itself."""
    if not hasattr(_OWN, "table"):
        _OWN.table = ctypes.create_string_buffer(_TABLE_BYTES)
    return _OWN.table


@functools.cache
def _kernels() -> tuple[Any, Any] | None:
    found = library()
    if found is None:
        return None
    sums, different = found.torchferry_errors, found.torchferry_different
    address, number, count = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64
    sums.argtypes = (address, number, address, number, address, address, count, address, address)
    sums.restype = None
    different.argtypes = (address, number, count, count, address)
    different.restype = ctypes.c_double
    return sums, different
