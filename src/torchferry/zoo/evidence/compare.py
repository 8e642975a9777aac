"""Holds the evidence of a migrated model against that of the original."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.zoo.evidence.model import Evidence

_HIGHER_IS_BETTER = re.compile(r"acc|top|map|miou|f1|bleu|auc|psnr|ssim|dice|recall|precision")
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
    steps: int = 0  # of a curve

    @property
    def is_speed(self) -> bool:
        return _SPEED.search(self.name) is not None


def compare(original: Evidence, port: Evidence, relative: float, absolute: float) -> tuple[Row, ...]:
    """Curves first, then figures; what only one of them has is listed too."""
    return (*_curves(original, port, relative, absolute), *_metrics(original, port))


def _curves(original: Evidence, port: Evidence, relative: float, absolute: float) -> Iterator[Row]:
    for name in dict.fromkeys((*original.curves, *port.curves)):
        ours, theirs = port.curves.get(name, ()), original.curves.get(name, ())
        pairs = list(zip(theirs, ours, strict=False))
        if not pairs:
            yield Row(name, _end(theirs), _end(ours), math.nan, None)
            continue
        offsets = [mine - golden for golden, mine in pairs]
        mean_absolute = sum(offsets) / len(pairs)
        scale = [abs(golden) for golden, _ in pairs]
        shares = [
            offset / size if size else math.inf * offset if offset else 0.0
            for offset, size in zip(offsets, scale, strict=True)
        ]
        mean_relative = sum(shares) / len(pairs)
        # a smaller loss is no fault; not a number is
        holds = mean_relative <= relative or mean_absolute <= absolute
        yield Row(name, _end(theirs), _end(ours), mean_relative, holds, len(pairs))


def _end(curve: tuple[float, ...]) -> float | None:
    """The mean of the last tenth: a single step is noise."""
    last = curve[-max(1, len(curve) // 10) :]
    return sum(last) / len(last) if last else None


def _metrics(original: Evidence, port: Evidence) -> Iterator[Row]:
    for name in dict.fromkeys((*original.metrics, *port.metrics)):
        golden, mine = original.metrics.get(name), port.metrics.get(name)
        if golden is None or mine is None:
            yield Row(name, golden, mine, math.nan, None)
            continue
        share = (mine - golden) / abs(golden) if golden else (0.0 if mine == golden else math.inf)
        yield Row(name, golden, mine, share, None if _SPEED.search(name) else _level(name, share))


def _level(name: str, share: float) -> bool:
    """Whether a figure reaches the original's level; one of unknown sense may differ in neither direction."""
    if _HIGHER_IS_BETTER.search(name):
        return share >= -_METRIC_TOLERANCE
    if _LOWER_IS_BETTER.search(name):
        return share <= _METRIC_TOLERANCE
    return abs(share) <= _METRIC_TOLERANCE
