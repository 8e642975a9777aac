"""Statistics of two runs held against each other: which call is the first whose results part more than rounding explains.

Statistics see less than elements do: values in a wrong order look the same, and a single wrong element may go under.
They say where to look; a record of tensors of that place says what is wrong. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from torchferry.accuracy.compare.matching import EXTRA, is_scratch
from torchferry.accuracy.compare.model import Outline
from torchferry.accuracy.file.api_names import BACKWARD, FORWARD, forward_name
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import INPUT_GRADIENT, OUTPUT_GRADIENT, Call, Statistics, TensorRecord
from torchferry.operators.names import family, is_plumbing, is_random
from torchferry.text import Text

# How large a difference rounding explains, where nothing is known but dtypes: for judgements without PyTorch.

EPSILONS = {
    "float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10, "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3, "float8_e5m2": 2.0**-2, "float8_e5m2fnuz": 2.0**-2, "complex64": 2.0**-23,
    "complex128": 2.0**-52, "complex32": 2.0**-10,
}  # fmt: skip
# A sum of n elements is rounded n times, and the errors add up as sqrt(n) does: the factor is for some ten thousand, of
# dtypes that devices add up in themselves. Those of fewer digits are added up in single precision.
_FACTOR = {"float64": 256.0, "float32": 256.0, "complex64": 256.0, "complex128": 256.0}
_FACTOR_OF_SHORT = 4.0
_REDUCED = 4 * 2.0**-10  # what products of mantissas of 10 bits, as in TF32, explain
_REDUCED_FAMILIES = ("matrix product", "convolution", "attention", "recurrent layer")
AMPLIFICATION = 16.0  # a difference of the inputs may grow by this much in one operator


def rounding(tensors: Iterable[TensorRecord]) -> float:
    """What is normal, in the dtype with the fewest digits that takes part."""
    return max((_rounding_of(tensor.dtype) for tensor in tensors), default=0.0)


def is_reduced(operator: str, distance: float) -> bool:
    """Whether an operator that multiplies matrices differs as it does when it takes fewer digits for them."""
    return distance <= _REDUCED and family(operator).removesuffix(" backward") in _REDUCED_FAMILIES


def _rounding_of(dtype: str) -> float:
    return EPSILONS.get(dtype, 0.0) * _FACTOR.get(dtype, _FACTOR_OF_SHORT)


# How far two tensors are apart, as far as statistics tell.


def distance(mine: Statistics, golden: Statistics) -> float:
    """Relative to golden's size; inf: not comparable."""
    if mine.checksum == golden.checksum and mine.count == golden.count:
        return 0.0
    counts = (mine.count, mine.nans, mine.infinities)
    if counts != (golden.count, golden.nans, golden.infinities) or _are_checksums_alone(mine, golden):
        return math.inf
    return max(
        _relative(mine.mean, golden.mean, golden.rms),
        _relative(mine.rms, golden.rms, golden.rms),
        _relative(mine.minimum, golden.minimum, golden.largest),  # with the next, a wrong sign shows
        _relative(mine.maximum, golden.maximum, golden.largest),
    )


def _are_checksums_alone(mine: Statistics, golden: Statistics) -> bool:
    """Whether all that is known of one side is whether its bits are equal."""
    is_finite = not (mine.nans or mine.infinities)
    return is_finite and any(
        each.count and math.isnan(each.maximum) and math.isnan(each.rms) for each in (mine, golden)
    )


def distance_of(difference: PairDifference) -> float | None:
    """The same of a pair of tensors; None if one has no statistics."""
    mine, golden = difference.mine.statistics, difference.golden.statistics
    return None if mine is None or golden is None else distance(mine, golden)


def _relative(mine: float, golden: float, size: float) -> float:
    if mine == golden or math.isnan(mine) or math.isnan(golden):  # nan: a dump does not tell it
        return 0.0
    if math.isnan(size):  # nor how large the elements are
        size = abs(golden)
    return abs(mine - golden) / size if size else math.inf


def comparable(mine: TensorRecord, golden: TensorRecord) -> tuple[TensorRecord, TensorRecord]:
    """Two tensors with statistics as far as dumps tell them: whether there is a NaN or an infinity, and not how many."""
    if mine.dtype.startswith("complex") and None not in (mine.statistics, golden.statistics):
        return replace(mine, statistics=None), golden  # of components here, of magnitudes there
    return _coarse(mine), _coarse(golden)


def _coarse(tensor: TensorRecord) -> TensorRecord:
    known = tensor.statistics
    if known is None or not (known.nans or known.infinities):
        return tensor
    has_nan = int(known.nans > 0)
    unknown = math.nan
    coarse = Statistics(
        known.count, has_nan, 1 - has_nan, known.zeros, unknown, unknown, unknown, unknown, known.checksum
    )
    return replace(tensor, statistics=coarse)


# Rows of `ferry watch` whose differences say nothing: rounding that was made large, and what follows from it.
#
# The gradient of a bias before a batch norm is zero but for rounding, so that no two devices agree on
# it, and an optimizer that divides by its size makes full steps of it; the batch norm then takes the
# difference out again. Such rows must not hide where two runs really part.

GRADIENT, LOSS, GRADIENT_NORM, BUFFER = "gradient", "loss", "gradient_norm", "buffer"
_FOLLOWING = ("update", "parameter")
_FAINT = 1e-3  # of the largest gradient of the step
_WRONG_BUFFER = 0.05  # a difference that is no matter of a bias before a batch norm

FAINT = Text(
    "its gradient is tiny compared with the others: rounding only",
    "其梯度与其他梯度相比极小，只是舍入误差",
)
HARMLESS = Text(
    "it has no effect: loss and gradients of this step are correct",
    "没有影响：这一步的损失和梯度均正常",
)


def is_watched(call: Call) -> bool:
    """Whether a call is a row of `ferry watch`, or of a record of modules; operators have a library's name before theirs."""
    return "::" not in call.operator


def watched_limit(tensor: TensorRecord) -> float:
    """What is normal; totals of a step are kept in double precision, but are no better than what was added up."""
    return max(_rounding_of(tensor.dtype), _rounding_of("float32"))


def with_reasons(pairs: Iterable[CallPair]) -> Iterator[tuple[CallPair, Text | None]]:
    """The pairs, each with why it is to be left alone, if it is. A step of a watched run is looked at whole."""

    def watched_step(pair: CallPair) -> int | None:
        call = pair.mine or pair.golden
        return call.step if call is not None and is_watched(call) else None

    for step, group in groupby(pairs, key=watched_step):
        if step is None:
            yield from ((pair, None) for pair in group)
            continue
        rows = list(group)
        faint, is_fine = _faint_parameters(rows), _is_fine(rows)
        for pair in rows:
            # statistics of a batch norm do not count in the loss: they must be about right by themselves
            is_buffer = pair.mine is not None and pair.mine.operator == BUFFER
            is_small = _farthest(pair) < (_WRONG_BUFFER if is_buffer else math.inf)
            is_harmless = is_fine and pair.mine is not None and is_small
            yield pair, FAINT if _is_faint(pair, faint) else HARMLESS if is_harmless else None


def _faint_parameters(pairs: Sequence[CallPair]) -> set[tuple[str, str, str]]:
    sizes: dict[tuple[str, str, str], float] = {}
    for pair in pairs:
        if pair.golden is not None and pair.golden.operator == GRADIENT:
            for tensor in pair.golden.outputs:
                if tensor.statistics is not None:
                    sizes[pair.golden.model, pair.golden.module, tensor.name] = tensor.statistics.rms
    largest = max(sizes.values(), default=0.0)
    return {name for name, size in sizes.items() if size < _FAINT * largest}


def _is_faint(pair: CallPair, faint: set[tuple[str, str, str]]) -> bool:
    call = pair.golden
    if call is None or call.operator not in (GRADIENT, *_FOLLOWING) or not call.outputs:
        return False
    return all((call.model, call.module, tensor.name) in faint for tensor in call.outputs)


def _is_fine(pairs: Sequence[CallPair]) -> bool:
    """Whether loss and norm of the gradients are both known, and differ as rounding does."""
    known = {}
    for pair in pairs:
        call = pair.mine
        if call is not None and call.operator in (LOSS, GRADIENT_NORM) and pair.outputs:
            known[call.operator] = _farthest(pair) <= watched_limit(pair.outputs[0].mine)
    return len(known) == 2 and all(known.values())


def faint_results(pair: CallPair) -> list[PairDifference]:
    """Gradients of a call that are rounding alone: beside its others, both sides' are smaller than rounding of those."""
    if pair.mine is None or pair.mine.phase != BACKWARD:
        return []
    known = [each.golden.statistics for each in (*pair.inputs, *pair.outputs)]
    size = max((each.rms for each in known if each is not None and math.isfinite(each.rms)), default=0.0)
    limit = size * rounding([each.mine for each in (*pair.inputs, *pair.outputs)])

    def is_small(tensor: TensorRecord) -> bool:
        known = tensor.statistics
        return known is not None and not (known.nans or known.infinities) and 0.0 < known.rms <= limit

    return [each for each in pair.outputs if is_small(each.mine) and is_small(each.golden)]


def _farthest(pair: CallPair) -> float:
    return max((each for each in map(distance_of, pair.outputs) if each is not None), default=0.0)


BASIS = "statistics"
_BAD = (Verdict.FAULT, Verdict.SUSPICIOUS)
_DRAWN = 10.0  # standard deviations by which two draws of random numbers may part

_OWN = Text(
    "its results differ by {out:.1e} although its inputs differ by at most {inputs:.1e}",
    "其输入最多相差 {inputs:.1e}，结果却相差 {out:.1e}",
)
_NOT_FINITE = Text(
    "its results contain {what} that the other side does not have, and its inputs contain none",
    "其结果含有对方没有的 {what}，而输入中没有",
)
_ALL_ZERO = Text("its results are all zero, the other side's are not", "其结果全为零，而对方不是")
_NO_STATISTICS = Text("one side has no statistics of its results", "有一方没有其结果的统计值")
_CHECKSUMS = Text(
    "its results differ and its inputs do not, but only checksums were recorded; dump statistics to "
    "see the size of the difference",
    "其结果不同而输入相同，但只保存了校验值；请导出统计值以查看差异大小",
)
_COUNTS = Text("its results have a different number of elements", "其结果的元素个数不同")


class ForwardDistances:
    """How far forward calls were apart: what they have kept for their backward calls is no input of those in a dump."""

    def __init__(self) -> None:
        self._apart: dict[str, float] = {}

    def see(self, call: Call, apart: float) -> None:
        """Note down the largest distance of a call's tensors."""
        if call.phase == FORWARD and call.node:
            self._apart[call.node] = apart

    def behind(self, call: Call) -> float:
        """That of the forward call to which a backward call belongs; 0: it has none that is known."""
        name = forward_name(call.node) if call.phase == BACKWARD and call.node else ""
        return self._apart.get(name, 0.0) if name != call.node else 0.0


def judge_statistics(pairs: Iterable[CallPair]) -> Iterator[CallPair]:
    """The pairs with a judgement of each, from the statistics of inputs and outputs.

    A call that no inputs are known of, as those of `ferry watch`, is held against all that came before it.
    """
    before, has_parted, forward = 0.0, False, ForwardDistances()
    for pair, reason in with_reasons(pairs):
        if pair.mine is None or pair.golden is None:
            is_news = pair.mine is None or pair.how != EXTRA
            yield pair if is_news else replace(pair, judgement=Judgement(Verdict.NORMAL, basis=BASIS))
            continue
        inputs = [each for each in map(_distance, pair.inputs) if each is not None]
        given = max(max(inputs, default=before), forward.behind(pair.mine))
        # statistics can look alike again; only equal bits prove that a call is not affected
        if has_parted and given:
            given = math.inf
        judgement, out = _judged(pair.mine, pair.inputs, pair.outputs, given)
        if reason is not None:
            if judgement.verdict not in (Verdict.EQUAL, Verdict.NORMAL):
                error = None if reason is FAINT else judgement.own_error  # how far rounding was blown up
                judgement = replace(
                    judgement, verdict=Verdict.NORMAL, sort=ErrorKind.NONE, own_error=error, why=reason
                )
            out = out if out <= (judgement.limit or 0.0) else 0.0
        before = max(before, out)
        forward.see(pair.mine, max([out, *inputs]))
        has_parted = has_parted or judgement.verdict in _BAD
        yield replace(pair, judgement=judgement)


_INSIDE = Text("a module inside it differs first", "其内部的模块先出现差异")
_BEFORE = Text("an earlier result already differs", "此前的结果已有差异")


def judge_modules(pairs: Iterable[CallPair]) -> Iterator[CallPair]:
    """The pairs of a record of modules, judged by themselves: what follows from another one is not wrong by itself. That
    is a module around one that is wrong; and of a gradient the record does not say what it was made of."""
    wrong: dict[tuple[int, str], list[str]] = {}  # in a step, of a model
    for pair in pairs:
        call = pair.mine
        if call is None or pair.judgement.verdict not in _BAD:
            yield pair
            continue
        before = wrong.setdefault((call.step, call.model), [])
        why = None
        if call.operator in (INPUT_GRADIENT, OUTPUT_GRADIENT):
            why = _BEFORE if before else None
        elif any(call.module == call.model or each.startswith(f"{call.module}.") for each in before):
            why = _INSIDE
        before.append(call.module)
        if why is not None:
            pair = replace(pair, judgement=replace(pair.judgement, verdict=Verdict.INHERITED, why=why))
        yield pair


def growth(pairs: Iterable[Outline]) -> list[tuple[int, float]]:
    """Each step, in order, with the largest finite distance of its pairs; of pairs that were judged."""
    found: dict[int, float] = {}
    for pair in pairs:
        if not pair.has_mine or not pair.has_golden or is_random(pair.operator):
            continue
        apart = pair.own_error or 0.0
        if math.isfinite(apart):
            found[pair.step] = max(found.get(pair.step, 0.0), apart)
    return sorted(found.items())


def _judged(
    call: Call, inputs: Sequence[PairDifference], outputs: Sequence[PairDifference], given: float
) -> tuple[Judgement, float]:
    faint = faint_results(CallPair(call, call, "", tuple(inputs), tuple(outputs)))
    if faint and any(_distance(each) for each in outputs):
        outputs = [each for each in outputs if each not in faint]
        if not outputs:
            return Judgement(Verdict.NORMAL, basis=BASIS, why=FAINT), 0.0
    known = [(difference, each) for difference in outputs if (each := _distance(difference)) is not None]
    if not known and (is_plumbing(call.operator) or not call.outputs):
        return Judgement(Verdict.NORMAL, basis=BASIS), 0.0
    if not known:
        return Judgement(Verdict.UNKNOWN, basis=BASIS, why=_NO_STATISTICS), 0.0
    figures = [(each.mine.statistics, each.golden.statistics) for each, _ in known]
    if all(mine and golden and mine.checksum == golden.checksum for mine, golden in figures):
        return Judgement(Verdict.EQUAL, basis=BASIS), 0.0
    difference, out = max(known, key=lambda one: one[1])
    limit = _limit(call, inputs, difference)
    verdict, sort, why = _verdict(call, difference, out, given, limit)
    if verdict is Verdict.FAULT and given == math.inf:
        verdict, sort, why = Verdict.INHERITED, ErrorKind.NONE, None
    judgement = Judgement(verdict, sort, difference.mine.name, out, None, limit, basis=BASIS, why=why)
    return judgement, out


def _distance(difference: PairDifference) -> float | None:
    return None if is_scratch(difference.mine) else distance_of(difference)


def _verdict(
    call: Call, difference: PairDifference, out: float, given: float, limit: float
) -> tuple[Verdict, ErrorKind, Text | None]:
    mine, golden = difference.mine.statistics, difference.golden.statistics
    assert mine is not None and golden is not None
    if mine.count != golden.count:
        return Verdict.SUSPICIOUS, ErrorKind.SHAPE, _COUNTS
    if mine.nans != golden.nans:
        return Verdict.FAULT, ErrorKind.NAN, _NOT_FINITE.format(what="NaN")
    if mine.infinities != golden.infinities:
        return Verdict.FAULT, ErrorKind.INFINITE, _NOT_FINITE.format(what="Inf")
    if out <= limit:
        return Verdict.NORMAL, ErrorKind.NONE, None
    # behind the place where runs part, statistics tell no more
    if given > limit or out <= AMPLIFICATION * given:
        return Verdict.INHERITED, ErrorKind.NONE, None
    if _are_checksums_alone(mine, golden):
        return Verdict.UNEXPLAINED, ErrorKind.NONE, _CHECKSUMS
    if mine.zeros == mine.count and golden.zeros < golden.count:
        return Verdict.FAULT, ErrorKind.ZERO, _ALL_ZERO
    if is_reduced(call.operator, out):
        return Verdict.REDUCED, ErrorKind.PRECISION, None
    return Verdict.SUSPICIOUS, ErrorKind.VALUES, _OWN.format(out=out, inputs=given)


def _limit(call: Call, inputs: Sequence[PairDifference], output: PairDifference) -> float:
    """What rounding explains, in the dtype with the fewest digits that takes part."""
    limit = rounding([*(each.mine for each in inputs), output.mine])
    if is_watched(call):
        limit = max(limit, watched_limit(output.mine))
    count = output.mine.statistics.count if output.mine.statistics else 0
    if (call.random is not None or is_random(call.operator)) and count:
        limit = max(limit, _DRAWN / math.sqrt(count))
    return limit


# Judgements from the figures alone, where PyTorch is not there to compute what is right.
#
# Golden is taken for right. Where the inputs of two calls differ already, nothing finer can be said than that a
# difference has not grown much.

GOLDEN_BASIS = "golden"
_POINTS = 64.0  # a single element may be this much farther off than all are on average
_CLEAR = 64.0  # times the limit: no rounding

_RANDOM = Text(
    "it draws random numbers, which differ between devices", "该算子产生随机数，不同设备的随机数不会相同"
)
_NOTHING = Text("none of its results can be compared", "其结果都无法比较")
_NOT_FINITE_ELEMENTS = Text(
    "{count} elements are NaN or Inf on one side only, unlike its inputs",
    "有 {count} 个元素只在一方是 NaN 或 Inf，而其输入没有这种差异",
)
_FARTHER_THAN_INPUTS = Text(
    "its results are off by {out:.1e}, its inputs by {given:.1e}; {limit:.1e} would be normal",
    "其结果相差 {out:.1e}，输入相差 {given:.1e}；正常范围为 {limit:.1e}",
)


def judge_by_figures(pair: CallPair) -> Judgement:
    """What the figures of the tensors of two calls say; golden is taken for right."""
    mine = pair.mine
    assert mine is not None
    known = [each for each in pair.outputs if each.metrics is not None and not is_scratch(each.mine)]
    if not known and (is_plumbing(mine.operator) or not mine.outputs):
        return Judgement(Verdict.NORMAL, basis=GOLDEN_BASIS)
    if not known:
        return Judgement(Verdict.UNKNOWN, basis=GOLDEN_BASIS, why=_NOTHING)
    if all(each.metrics and each.metrics.is_equal for each in known):
        return Judgement(Verdict.EQUAL, basis=GOLDEN_BASIS)
    if mine.random is not None or is_random(mine.operator):
        return Judgement(Verdict.UNKNOWN, basis=GOLDEN_BASIS, why=_RANDOM)
    given = max((distance_of_figures(each) for each in pair.inputs if not is_scratch(each.mine)), default=0.0)
    worst = max(known, key=distance_of_figures)
    metrics, out = worst.metrics, distance_of_figures(worst)
    assert metrics is not None
    limit = rounding([*(each.mine for each in pair.inputs), worst.mine])
    if is_watched(mine):
        limit = max(limit, watched_limit(worst.mine))

    def judged(verdict: Verdict, sort: ErrorKind = ErrorKind.NONE, why: Text | None = None) -> Judgement:
        return Judgement(verdict, sort, worst.mine.name, out, None, limit, GOLDEN_BASIS, why)

    if out <= limit:
        return judged(Verdict.NORMAL)
    if out <= AMPLIFICATION * given:
        return judged(Verdict.INHERITED)
    if metrics.wrong_nonfinite:
        sort = ErrorKind.NAN if metrics.nans else ErrorKind.INFINITE
        return judged(Verdict.FAULT, sort, _NOT_FINITE_ELEMENTS.format(count=metrics.wrong_nonfinite))
    if is_reduced(mine.operator, out):
        return judged(Verdict.REDUCED, ErrorKind.PRECISION)
    verdict = Verdict.FAULT if given <= limit and out > _CLEAR * limit else Verdict.SUSPICIOUS
    sort = ErrorKind.ZERO if metrics.zeros == metrics.count else ErrorKind.VALUES
    return judged(verdict, sort, _FARTHER_THAN_INPUTS.format(out=out, given=given, limit=limit))


_OTHER_SLICES = Text(
    "elements of {output} that were not recorded differ: its statistics differ by {out:.1e}",
    "{output} 中未记录的元素不同：其统计值相差 {out:.1e}",
)


def with_other_slices(judgement: Judgement, pair: CallPair) -> Judgement:
    """A judgement by slices of large tensors, with what the statistics of all their elements say."""
    is_by_golden = judgement.basis == GOLDEN_BASIS
    if judgement.verdict in _BAD and is_by_golden and any(map(_distance, pair.inputs)):
        # it may follow from slices that were not kept
        return replace(judgement, verdict=Verdict.INHERITED, sort=ErrorKind.NONE, why=None)
    if judgement.verdict not in (Verdict.EQUAL, Verdict.NORMAL):
        return judgement
    known = [(each, apart) for each in pair.outputs if each.mine.part and (apart := _distance(each))]
    if not known:
        return judgement
    worst, out = max(known, key=lambda one: one[1])
    given = max((each for each in map(_distance, pair.inputs) if each is not None), default=0.0)
    limit = rounding([*(each.mine for each in pair.inputs), worst.mine])
    if out <= limit or out <= AMPLIFICATION * given:
        return replace(judgement, verdict=Verdict.INHERITED if given else Verdict.NORMAL)
    why = _OTHER_SLICES.format(output=worst.mine.name, out=out)
    return Judgement(Verdict.SUSPICIOUS, ErrorKind.VALUES, worst.mine.name, out, None, limit, BASIS, why)


def distance_of_figures(difference: PairDifference) -> float:
    """Of all elements, or the farthest one, relative to golden's size; inf where a NaN or Inf stands on one side only."""
    metrics = difference.metrics
    if metrics is None or metrics.is_equal:
        return 0.0
    apart = metrics.relative_euclidean
    if metrics.wrong_nonfinite or math.isnan(apart):
        return math.inf
    size = metrics.rms_error / apart if apart else 0.0  # of golden's elements
    return max(apart, metrics.max_abs / size / _POINTS if size else 0.0)
