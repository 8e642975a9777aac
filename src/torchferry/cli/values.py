"""What the words after options mean: whole numbers, steps, seeds, times."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

LARGEST_SEED = (1 << 32) - 1  # what PYTHONHASHSEED and numpy take


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads a number in this range, as the `type` of an option."""
    limits = f"from {least} on" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {limits}")
        return value

    return read


at_least_one = whole_number(1)
seed = whole_number(0, LARGEST_SEED)


def steps(text: str) -> int | None:
    """A number of steps; None for `all`."""
    return None if text == "all" else at_least_one(text)


def seconds(text: str) -> float:
    """A time that is more than none."""
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write it in seconds, as 600")
    return value


def number(text: str) -> float:
    """NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
