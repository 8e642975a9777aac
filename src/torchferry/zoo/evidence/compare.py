"""Holds the evidence of a migrated model against that of the original."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.zoo.evidence.model import Curve, Evidence, Step

_SHARES = re.compile(r"acc|top|map|iou|f1|auc|dice|recall|precision")  # as 0.76 or as 76 %
_HIGHER_IS_BETTER = re.compile(rf"{_SHARES.pattern}|bleu|psnr|ssim")
_LOWER_IS_BETTER = re.compile(r"loss|err|wer|cer|ppl|perplexity|rmse|mae|mse|fid")
_SPEED = re.compile(r"/s$|throughput|fps")
_METRIC_TOLERANCE = 0.01  # relative; the guides ask for the original's level, and runs differ by their seeds


@dataclass(frozen=True)
class Row:
    """One figure of both runs."""

    name: str
    original: float | None  # of a curve, at its end
    port: float | None
    difference: float  # relative, of curves the mean over all steps; positive: the port's is greater
    holds: bool | None  # None: nothing to judge, as for speed
    steps: int = 0  # of a curve: how many both runs have
    lengths: tuple[int, int] = (0, 0)  # of a curve: how many each has
    offset: float = math.nan  # of a curve: the mean of the differences themselves
    broken_at: Step | int | None = None  # of a curve: the first value that is no number

    @property
    def is_speed(self) -> bool:
        return _SPEED.search(self.name) is not None

    @property
    def is_curve(self) -> bool:
        return any(self.lengths)


def compare(original: Evidence, port: Evidence, relative: float, absolute: float) -> tuple[Row, ...]:
    """Curves first, then figures; what only one of them has is listed too."""
    return (*_curves(original, port, relative, absolute), *_metrics(original, port))


def _curves(original: Evidence, port: Evidence, relative: float, absolute: float) -> Iterator[Row]:
    none = Curve(())
    for name in dict.fromkeys((*original.curves, *port.curves)):
        theirs, ours = original.curves.get(name, none), port.curves.get(name, none)
        ends, lengths = (_end(theirs), _end(ours)), (len(theirs.values), len(ours.values))
        pairs = _pairs(theirs, ours)
        if not pairs:
            yield Row(name, *ends, math.nan, None, lengths=lengths)
            continue
        share = sum(_share(golden, mine) for golden, mine in pairs) / len(pairs)
        offset = sum(mine - golden for golden, mine in pairs) / len(pairs)
        # a smaller loss is no fault; not a number is
        holds = share <= relative or offset <= absolute
        yield Row(name, *ends, share, holds, len(pairs), lengths, offset, _broken_at(ours))


def _pairs(theirs: Curve, ours: Curve) -> list[tuple[float, float]]:
    """The values of the same steps: by their numbers where both runs number them, else by their order."""
    if not theirs.steps or not ours.steps or _is_shifted(theirs.steps, ours.steps):
        return list(zip(theirs.values, ours.values, strict=False))
    mine = dict(zip(ours.steps, ours.values, strict=True))
    return [
        (value, mine[step]) for step, value in zip(theirs.steps, theirs.values, strict=True) if step in mine
    ]


def _is_shifted(theirs: tuple[Step, ...], ours: tuple[Step, ...]) -> bool:
    """Whether one run counts from 0 and the other from 1."""
    shifts = {(b[0] - a[0], b[1] - a[1]) for a, b in zip(theirs, ours, strict=False)}
    return len(shifts) == 1 and max(map(abs, next(iter(shifts)))) == 1


def _share(golden: float, mine: float) -> float:
    offset = mine - golden
    if golden:
        return offset / abs(golden)
    return math.inf * offset if offset else 0.0


def _broken_at(curve: Curve) -> Step | int | None:
    for index, value in enumerate(curve.values):
        if not math.isfinite(value):
            return curve.steps[index] if curve.steps else index
    return None


def _end(curve: Curve) -> float | None:
    """The mean of the last tenth: a single step is noise."""
    last = curve.values[-max(1, len(curve.values) // 10) :]
    return sum(last) / len(last) if last else None


def _metrics(original: Evidence, port: Evidence) -> Iterator[Row]:
    for name in dict.fromkeys((*original.metrics, *port.metrics)):
        golden, mine = original.metrics.get(name), port.metrics.get(name)
        if golden is None or mine is None:
            yield Row(name, golden, mine, math.nan, None)
            continue
        share = _share(*_in_one_unit(name, golden, mine))
        yield Row(name, golden, mine, share, None if _SPEED.search(name) else _level(name, share))


def _in_one_unit(name: str, golden: float, mine: float) -> tuple[float, float]:
    """An accuracy of 0.76 is one of 76 %."""
    if _SHARES.search(name) and 0 < golden <= 1 < mine <= 100:
        return golden * 100, mine
    if _SHARES.search(name) and 0 < mine <= 1 < golden <= 100:
        return golden, mine * 100
    return golden, mine


def _level(name: str, share: float) -> bool:
    """Whether a figure reaches the original's level; one of unknown sense may differ in neither direction."""
    if _HIGHER_IS_BETTER.search(name):
        return share >= -_METRIC_TOLERANCE
    if _LOWER_IS_BETTER.search(name):
        return share <= _METRIC_TOLERANCE
    return abs(share) <= _METRIC_TOLERANCE
