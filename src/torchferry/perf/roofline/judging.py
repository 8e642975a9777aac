"""How near operators come to what is possible: on a device that is known, or else beside each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from torchferry.perf.roofline.devices import Peaks
from torchferry.perf.roofline.work import Work

LEAST_CALL = 5e-6  # seconds: what the start of a kernel and its first and last blocks cost, whatever it does
_ALIKE_WORK = 8  # calls are alike whose work is at most so many times another's
_ALIKE_INTENSITY = 4  # and whose operations for each byte are at most so many times another's


class Measured(NamedTuple):
    """Calls of one operator with one signature."""

    operator: str
    work: Work
    seconds: float  # of one call


def least_seconds(work: Work, peaks: Peaks) -> float | None:
    """Of one call; None: not known."""
    found = peaks.least_seconds(work)
    return None if found is None else max(found, LEAST_CALL)


def reached(work: Work | None, seconds: float, peaks: Peaks | None) -> float | None:
    """The least possible time of a call over the time that it took, up to 1; None: not known."""
    least = least_seconds(work, peaks) if work is not None and peaks is not None else None
    return min(least / seconds, 1.0) if least is not None and seconds > 0 else None


def best_of_alike(mine: Measured, others: Iterable[Measured]) -> float:
    """What this call would take at the speed of the fastest calls of the same operator that do as much in the same way.

    On a device of which nothing is known this is all that there is to compare with."""
    amount = _amount(mine.work)
    speeds = [
        _amount(other.work) / other.seconds
        for other in others
        if other.operator == mine.operator and other.seconds and _is_alike(mine.work, other.work)
    ]
    fastest = max(speeds, default=0.0)
    return min(max(amount / fastest, LEAST_CALL), mine.seconds) if fastest else mine.seconds


def _amount(work: Work) -> float:
    return work.flops or work.nbytes


def _is_alike(one: Work, other: Work) -> bool:
    if one.kind != other.kind or one.dtype != other.dtype:
        return False
    if not _is_near(_amount(one), _amount(other), _ALIKE_WORK):
        return False
    return not one.flops or _is_near(one.flops / one.nbytes, other.flops / other.nbytes, _ALIKE_INTENSITY)


def _is_near(one: float, other: float, times: float) -> bool:
    return one <= other * times and other <= one * times
