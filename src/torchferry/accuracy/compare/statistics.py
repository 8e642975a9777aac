"""Statistics of two runs held against each other: which call is the first whose results part more than rounding explains.

Statistics see less than elements do: values in a wrong order look the same, and a single wrong element may go under.
They say where to look; a record of tensors of that place says what is wrong. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from torchferry.accuracy.compare.distances import distance_of
from torchferry.accuracy.compare.limits import AMPLIFICATION, is_reduced, rounding
from torchferry.accuracy.compare.matching import EXTRA
from torchferry.accuracy.compare.model import Difference, Judgement, Pair, Sort, Verdict
from torchferry.accuracy.compare.names import is_plumbing, is_random
from torchferry.accuracy.compare.rows import Outline
from torchferry.accuracy.compare.tensors import is_scratch
from torchferry.accuracy.compare.watched import FAINT, is_watched, watched_limit, with_reasons
from torchferry.accuracy.model import Call
from torchferry.text import Text

BASIS = "statistics"
_BAD = (Verdict.FAULT, Verdict.SUSPICIOUS)
_DRAWN = 10.0  # standard deviations by which two draws of random numbers may part

_OWN = Text(
    "its results part by {out:.1e} although its inputs differ by {inputs:.1e} at most",
    "其输入最多相差 {inputs:.1e}，结果却相差 {out:.1e}",
)
_NOT_FINITE = Text(
    "its results have {what} that the other side's do not have, and its inputs have none",
    "其结果含有对方没有的 {what}，而输入中没有",
)
_ALL_ZERO = Text("its results are all zero, the other side's are not", "其结果全为零，而对方不是")
_NO_STATISTICS = Text("one side has no statistics of its results", "有一方没有其结果的统计量")
_COUNTS = Text("its results have another number of elements", "其结果的元素个数不同")


@dataclass(frozen=True)
class Growth:
    """How far the results of one step are apart, at most."""

    step: int
    distance: float


def judge_statistics(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs with a judgement of each, from the statistics of inputs and outputs.

    A call that no inputs are known of, as those of `ferry watch`, is held against all that came before it.
    """
    before, has_parted = 0.0, False
    for pair, reason in with_reasons(pairs):
        if pair.mine is None or pair.golden is None:
            is_news = pair.mine is None or pair.how != EXTRA
            yield pair if is_news else replace(pair, judgement=Judgement(Verdict.NORMAL, basis=BASIS))
            continue
        inputs = [each for each in map(_distance, pair.inputs) if each is not None]
        given = max(inputs, default=before)
        if (
            has_parted and given
        ):  # statistics can look alike again; only equal bits prove that a call is not affected
            given = math.inf
        judgement, out = _judged(pair.mine, pair.inputs, pair.outputs, given)
        if reason is not None:
            judgement = _excused(judgement, reason)
            out = out if out <= (judgement.limit or 0.0) else 0.0
        before = max(before, out)
        has_parted = has_parted or judgement.verdict in _BAD
        yield replace(pair, judgement=judgement)


def _excused(judgement: Judgement, reason: Text) -> Judgement:
    """The judgement of a row that says nothing; how far rounding was blown up in it is of no interest."""
    if judgement.verdict in (Verdict.EQUAL, Verdict.NORMAL):
        return judgement
    error = None if reason is FAINT else judgement.own_error
    return replace(judgement, verdict=Verdict.NORMAL, sort=Sort.NONE, own_error=error, why=reason)


def growth(pairs: Iterable[Outline]) -> tuple[Growth, ...]:
    """The largest finite distance of each step, in their order; of pairs that were judged."""
    found: dict[int, float] = {}
    for pair in pairs:
        if not pair.has_mine or not pair.has_golden or is_random(pair.operator):
            continue
        apart = pair.own_error or 0.0
        if math.isfinite(apart):
            found[pair.step] = max(found.get(pair.step, 0.0), apart)
    return tuple(Growth(step, found[step]) for step in sorted(found))


def _judged(
    call: Call, inputs: Sequence[Difference], outputs: Sequence[Difference], given: float
) -> tuple[Judgement, float]:
    """What is said of a call, and how far its results are apart."""
    known = [(difference, each) for difference in outputs if (each := _distance(difference)) is not None]
    if not known and (is_plumbing(call.operator) or not call.outputs):
        return Judgement(Verdict.NORMAL, basis=BASIS), 0.0
    if not known:
        return Judgement(Verdict.UNKNOWN, basis=BASIS, why=_NO_STATISTICS), 0.0
    difference, out = max(known, key=lambda one: one[1])
    if all(_is_equal(each) for each, _ in known):
        return Judgement(Verdict.EQUAL, basis=BASIS), 0.0
    limit = _limit(call, inputs, difference)
    verdict, sort, why = _verdict(call, difference, out, given, limit)
    if verdict is Verdict.FAULT and given == math.inf:
        verdict, sort, why = Verdict.INHERITED, Sort.NONE, None
    judgement = Judgement(verdict, sort, difference.mine.name, out, None, limit, basis=BASIS, why=why)
    return judgement, out


def _distance(difference: Difference) -> float | None:
    return None if is_scratch(difference.mine) else distance_of(difference)


def _is_equal(difference: Difference) -> bool:
    mine, golden = difference.mine.statistics, difference.golden.statistics
    return mine is not None and golden is not None and mine.checksum == golden.checksum


def _verdict(
    call: Call, difference: Difference, out: float, given: float, limit: float
) -> tuple[Verdict, Sort, Text | None]:
    mine, golden = difference.mine.statistics, difference.golden.statistics
    assert mine is not None and golden is not None
    if mine.count != golden.count:
        return Verdict.SUSPICIOUS, Sort.SHAPE, _COUNTS
    if mine.nans != golden.nans:
        return Verdict.FAULT, Sort.NAN, _NOT_FINITE.format(what="NaN")
    if mine.infinities != golden.infinities:
        return Verdict.FAULT, Sort.INFINITE, _NOT_FINITE.format(what="Inf")
    if out <= limit:
        return Verdict.NORMAL, Sort.NONE, None
    if (
        given > limit or out <= AMPLIFICATION * given
    ):  # behind the place where runs part, statistics tell no more
        return Verdict.INHERITED, Sort.NONE, None
    if mine.zeros == mine.count and golden.zeros < golden.count:
        return Verdict.FAULT, Sort.ZERO, _ALL_ZERO
    if is_reduced(call.operator, out):
        return Verdict.REDUCED, Sort.PRECISION, None
    return Verdict.SUSPICIOUS, Sort.VALUES, _OWN.format(out=out, inputs=given)


def _limit(call: Call, inputs: Sequence[Difference], output: Difference) -> float:
    """What rounding explains, in the dtype with the fewest digits that takes part."""
    limit = rounding([*(each.mine for each in inputs), output.mine])
    if is_watched(call):
        limit = max(limit, watched_limit(output.mine))
    count = output.mine.statistics.count if output.mine.statistics else 0
    if (call.random is not None or is_random(call.operator)) and count:
        limit = max(limit, _DRAWN / math.sqrt(count))
    return limit
