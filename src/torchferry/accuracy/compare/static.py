"""Judgements from the figures alone, where PyTorch is not there to compute what is right. No torch.

Golden is taken for right. Where the inputs of two calls differ already, nothing finer can be said than that a
difference has not grown much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchferry.accuracy.compare.limits import AMPLIFICATION, is_reduced, rounding
from torchferry.accuracy.compare.model import Difference, Judgement, Metrics, Sort, Verdict
from torchferry.accuracy.compare.names import is_plumbing, is_random
from torchferry.accuracy.compare.tensors import is_scratch
from torchferry.accuracy.model import Call
from torchferry.text import Text

BASIS = "golden"
_POINTS = 64.0  # a single element may be this much farther off than all are on average
_CLEAR = 64.0  # times the limit: no rounding

_RANDOM = Text(
    "it draws random numbers, which no two devices draw alike", "该算子产生随机数，不同设备的随机数不会相同"
)
_NOTHING = Text("none of its results can be compared", "其结果都无法比较")
_NOT_FINITE = Text(
    "{count} elements are NaN or Inf on one side only, and its inputs do not differ so",
    "有 {count} 个元素只在一方是 NaN 或 Inf，而其输入没有这种差异",
)
_OWN = Text(
    "its results are off by {out:.1e}, its inputs by {given:.1e}; {limit:.1e} would be normal",
    "其结果相差 {out:.1e}，输入相差 {given:.1e}；正常范围为 {limit:.1e}",
)


def judge_by_figures(mine: Call, inputs: Sequence[Difference], outputs: Sequence[Difference]) -> Judgement:
    """What the figures of a pair of calls say."""
    known = [each for each in outputs if each.metrics is not None and not is_scratch(each.mine)]
    if not known and (is_plumbing(mine.operator) or not mine.outputs):
        return Judgement(Verdict.NORMAL, basis=BASIS)
    if not known:
        return Judgement(Verdict.UNKNOWN, basis=BASIS, why=_NOTHING)
    if all(each.metrics and each.metrics.is_equal for each in known):
        return Judgement(Verdict.EQUAL, basis=BASIS)
    if mine.random is not None or is_random(mine.operator):
        return Judgement(Verdict.UNKNOWN, basis=BASIS, why=_RANDOM)
    given = max((distance_of_figures(each) for each in inputs if not is_scratch(each.mine)), default=0.0)
    worst = max(known, key=distance_of_figures)
    limit = rounding([*(each.mine for each in inputs), worst.mine])
    verdict, sort, why = _verdict(mine.operator, worst, given, limit)
    out = distance_of_figures(worst)
    return Judgement(verdict, sort, worst.mine.name, out, None, limit, BASIS, why)


def _verdict(
    operator: str, worst: Difference, given: float, limit: float
) -> tuple[Verdict, Sort, Text | None]:
    metrics = worst.metrics
    assert metrics is not None
    out = distance_of_figures(worst)
    if out <= limit:
        return Verdict.NORMAL, Sort.NONE, None
    if out <= AMPLIFICATION * given:
        return Verdict.INHERITED, Sort.NONE, None
    if metrics.wrong_nonfinite:
        sort = Sort.NAN if metrics.nans else Sort.INFINITE
        return Verdict.FAULT, sort, _NOT_FINITE.format(count=metrics.wrong_nonfinite)
    if is_reduced(operator, out):
        return Verdict.REDUCED, Sort.PRECISION, None
    is_clear = given <= limit and out > _CLEAR * limit
    return (
        Verdict.FAULT if is_clear else Verdict.SUSPICIOUS,
        Sort.ZERO if metrics.zeros == metrics.count else Sort.VALUES,
        _OWN.format(out=out, given=given, limit=limit),
    )


def distance_of_figures(difference: Difference) -> float:
    """Relative to golden's size; inf where a NaN or Inf stands on one side only."""
    metrics = difference.metrics
    if metrics is None or metrics.is_equal:
        return 0.0
    if metrics.wrong_nonfinite:
        return math.inf
    return max(_or_infinite(metrics.relative_euclidean), _point(metrics))


def _point(metrics: Metrics) -> float:
    """The largest single difference, against the size of golden's elements."""
    size = metrics.rms_error / metrics.relative_euclidean if metrics.relative_euclidean else 0.0
    return metrics.max_abs / size / _POINTS if size else 0.0


def _or_infinite(value: float) -> float:
    return math.inf if math.isnan(value) else value


class FigureJudge:
    """Judges calls by the figures of their tensors."""

    def judge(
        self, mine: Call, golden: Call | None, inputs: Sequence[Difference], outputs: Sequence[Difference]
    ) -> Judgement:
        """Golden is taken for right; without it nothing can be said."""
        return judge_by_figures(mine, inputs, outputs)
