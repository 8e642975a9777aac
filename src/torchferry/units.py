"""Figures as people read them, one spelling each: sizes, times, shares, numbers; and how large an element of a dtype is."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping

# Bytes of an element; a name that is not here is a dtype that this release does not know.
ITEM_SIZES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex32": 4, "complex64": 8, "complex128": 16,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "qint8": 1, "quint8": 1, "qint32": 4,
}  # fmt: skip

_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_MOST_BYTES = 2.0**90  # files made by others may say anything, also what is no float


def size(count: float) -> str:
    """A number of bytes: 512 B, 1.5 GiB."""
    value, unit = float(min(count, _MOST_BYTES)), 0
    while value >= 1024 and unit < len(_SIZE_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_SIZE_UNITS[unit]}" if unit else f"{value:.0f} B"


_SIZE_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE_TEXT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?)(?:i?b)?", re.IGNORECASE)


def bytes_of(text: str) -> int | None:
    """Of "32GiB", "512MB", "1.5G" (all in powers of 1024) or of a plain number; None: it is no size."""
    match = _SIZE_TEXT.fullmatch(text.strip())
    return int(float(match["number"]) * _SIZE_FACTORS[match["unit"].lower()]) if match else None


def duration(seconds: float) -> str:
    """A time with three digits, in the unit that fits: 1.25 s, 12.3 ms, 456 µs."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= length * 0.9995:
            return f"{_three_digits(seconds / length)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns" if seconds else "0"


def signed_duration(seconds: float) -> str:
    """A difference of times: +1.20 ms."""
    return f"{'+' if seconds > 0 else '−' if seconds < 0 else ''}{duration(abs(seconds))}"


def long_duration(seconds: float) -> str:
    """A time that is waited for, in whole seconds: 8 s, 2 min 5 s, 1 h 3 min."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def percent(share: float) -> str:
    """A share with one decimal, 12.3%; what is not nothing does not look so."""
    return "< 0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def percent_of_all(share: float, is_all: bool) -> str:
    """A share with one decimal, rounded down, so that 100% is said only where that is all."""
    if is_all:
        return "100%"
    tenths = math.floor(share * 1000 + 1e-9)
    if tenths >= 1000:
        return "> 99.9%"
    return f"{tenths / 10:.1f}%" if tenths or not share > 0 else "< 0.1%"


def number(value: float) -> str:
    """As people read it; seven digits tell single-precision values apart."""
    return f"{value:.7g}"


def short_number(value: float | None) -> str:
    """Two digits that matter; a dash where nothing is known."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.2g}" if not value or math.isinf(value) or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


def signal_name(number: int) -> str:
    """The name of a signal: SIGSEGV of 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _three_digits(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{digits}f}"
