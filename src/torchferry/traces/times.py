"""Times in a trace, numbers or texts of microseconds, as whole nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from torchferry.traces.columns import Ints

INVALID = np.iinfo(np.int64).min
_LONGEST = 2**62  # nanoseconds
_MOST_DIGITS = 20  # with the point: what a 64-bit number of nanoseconds holds


def nanoseconds(times: Sequence[Any]) -> Ints:
    """INVALID where there is no time."""
    try:
        numbers = np.array(times)
    except (ValueError, OverflowError):
        numbers = np.empty(0, object)
    if numbers.dtype.kind in "iu" and numbers.size:
        return np.where(np.abs(numbers) < _LONGEST // 1000, numbers.astype(np.int64) * 1000, INVALID)
    if numbers.dtype.kind == "f":
        return _of_floats(numbers)
    is_text = numbers.dtype.kind == "U" and all(isinstance(time, str) for time in times)
    if is_text and (found := _of_equal_texts(times)) is not None:
        return found
    return np.fromiter((_of_one(time) for time in times), np.int64, len(times))


def _of_floats(numbers: Any) -> Ints:
    valid = np.abs(numbers) < _LONGEST // 1000  # false for NaN
    numbers = np.where(valid, numbers, 0.0)
    whole = np.floor(numbers)
    # microseconds and their fraction apart: together, as nanoseconds, they do not fit a float
    found = whole.astype(np.int64) * 1000 + np.rint((numbers - whole) * 1000).astype(np.int64)
    return np.where(valid, found, INVALID)


def _of_equal_texts(times: Sequence[str]) -> Ints | None:
    """Of texts that all look like 1704161511420306.491, as vendors write them; None if some look otherwise."""
    length = len(times[0])
    text = "".join(times)
    if not 4 < length <= _MOST_DIGITS or len(text) != length * len(times) or not text.isascii():
        return None
    digits = np.frombuffer(text.encode(), np.uint8).reshape(len(times), length).astype(np.int64) - ord("0")
    point = digits[:, -4].copy()
    digits = np.delete(digits, -4, axis=1)
    if (point != ord(".") - ord("0")).any() or (digits < 0).any() or (digits > 9).any():
        return None
    return digits @ 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)


def _of_one(time: Any) -> int:
    if isinstance(time, str):
        whole, _, fraction = time.strip().partition(".")
        if whole.isdecimal() and len(whole) < 17 and (not fraction or fraction.isdecimal()):
            return int(whole) * 1000 + int(fraction[:3].ljust(3, "0"))
    try:
        found = int(Decimal(str(time)) * 1000)
    except (ArithmeticError, ValueError, TypeError):
        return INVALID
    return found if abs(found) < _LONGEST else INVALID
