"""Judges calls: each result against what its own inputs should have given, so that earlier errors do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

import torch

from torchferry.accuracy.judge import decompositions, random_numbers
from torchferry.accuracy.judge.clearing import FLOAT64, clear
from torchferry.accuracy.judge.execution import (
    Setting,
    TensorSource,
    blank_inputs,
    execute,
    has_gaps,
    is_random,
    is_view,
    leaves_uninitialised,
    lies_in_inputs,
    make_arguments,
    read_inputs,
)
from torchferry.accuracy.judge.formulas import formula_of
from torchferry.accuracy.judge.kernel_faults import (
    is_alike,
    is_small_enough,
    is_split,
    leaning,
    misreadings,
    unread_inputs,
)
from torchferry.accuracy.judge.large import (
    SAID,
    HeldMemory,
    LargeCall,
    badness,
    judge_large,
    parts_by_element,
)
from torchferry.accuracy.judge.margins import Compared, Errors, digits_of, margins_of, views
from torchferry.accuracy.judge.model import (
    CallPair,
    CannotExecuteError,
    ErrorKind,
    Judgement,
    PairDifference,
    Verdict,
)
from torchferry.accuracy.judge.pieces import is_large
from torchferry.accuracy.judge.references import (
    Reference,
    are_positions,
    attempt,
    differ_where_casts_are_undefined,
    different_contents,
    is_order_free,
    point_to_equal_values,
)
from torchferry.accuracy.judge.sharing import PartSharing
from torchferry.accuracy.judge.sorting import Context, sort_of
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.observe.modes import unobserved
from torchferry.operators.names import without_overload
from torchferry.text import Text

_UNSAFE_VIEW = "_unsafe_view"  # PyTorch does not call it a view, so that autograd need not follow it
_SHAPE = Text("{output}: the shape is {mine}, expected {right}", "{output}：形状为 {mine}，应为 {right}")


def is_mere_view(call: Call) -> bool:
    """Nothing was computed: the result is bytes of the inputs, or nobody has read it."""
    if without_overload(call.operator) == _UNSAFE_VIEW:
        return lies_in_inputs(call)
    return is_view(call.operator) and (has_gaps(call) or lies_in_inputs(call))


def judge_shapes(call: Call, normal: Verdict) -> Judgement:
    """A view has no contents of its own: its shape is all that can be wrong."""
    blank = blank_inputs(call)
    for record, right in zip(call.outputs, attempt(lambda: execute(call, blank, "cpu")), strict=True):
        if right is not None and tuple(right.shape) != record.shape:
            return of_another_shape(record, right)
    return Judgement(normal)


def of_another_shape(record: TensorRecord, right: torch.Tensor) -> Judgement:
    """The judgement of an output whose shape is wrong."""
    why = _SHAPE.format(output=record.name, mine=list(record.shape), right=list(right.shape))
    return Judgement(Verdict.FAULT, ErrorKind.SHAPE, record.name, basis="float64", why=why)


GOLDEN, DISTRIBUTION = "golden", "distribution"
_FLIPPED = 2e-3  # mean distance from golden, in units of the last place, that a few other roundings make
_NO_MEMORY = "no memory"  # zeros that autograd only notes down: nothing was computed

_UNKNOWN = Text("it can't be recomputed: {reason}", "无法重新计算：{reason}")
_NO_OUTPUT = Text("its results were not recorded", "没有记录其结果")
_FEWER_DIGITS = Text(
    "{output}: computed with reduced precision, as with TF32, or with rounded partial sums",
    "{output}：以降低的精度计算（如 TF32），或部分和经过舍入",
)


_Result = tuple[str, str, tuple[int, ...]]  # of an operator: its name, that of the result, its shape


class Judge:
    """Judges the calls of two records, or of one alone."""

    def __init__(
        self,
        mine: TensorSource,
        golden: TensorSource | None,
        *,
        is_thorough: bool = False,
        sharing: PartSharing | None = None,
    ) -> None:
        """Thoroughly: all of it in double precision, and nothing cleared before. `sharing`: who works on parts."""
        self._mine, self._golden, self._is_thorough = mine, golden, is_thorough
        self._sharing = sharing or PartSharing()
        self._held = HeldMemory()
        self._earlier: dict[_Result, tuple[int, TensorRecord]] = {}
        self._known: dict[
            int, dict[_Result, tuple[int, TensorRecord]]
        ] = {}  # of calls that are judged at this time

    def expect(self, pair: CallPair) -> None:
        """To be called in the order of the program, before the pair is judged: what the same operators gave before is
        noted. Any number of threads may judge then."""
        if pair.mine is None:
            return
        results = [(pair.mine.operator, record.name, record.shape) for record in pair.mine.outputs]
        self._known[pair.mine.number] = {
            each: self._earlier[each] for each in results if each in self._earlier
        }
        for each, record in zip(results, pair.mine.outputs, strict=True):
            self._earlier[each] = (pair.mine.number, record)

    def judge(self, pair: CallPair) -> Judgement:
        """Judge a call of mine, and the call of golden's that does the same job."""
        mine = pair.mine
        assert mine is not None
        if mine.number not in self._known:
            self.expect(pair)
        try:
            with unobserved():
                return self._judge(mine, pair)
        finally:
            del self._known[mine.number]

    def _judge(self, mine: Call, pair: CallPair) -> Judgement:
        golden, inputs, outputs = pair.golden, pair.inputs, pair.outputs
        is_same = golden is not None and golden.operator == mine.operator
        is_same_job = is_same and (_are_equal(inputs, mine.inputs) or _are_views_nobody_read(mine, inputs))
        if is_same_job and (_are_equal(outputs, mine.outputs) or _are_views_nobody_read(mine, outputs)):
            return Judgement(Verdict.EQUAL)
        if leaves_uninitialised(mine.operator) or all(each.unread == _NO_MEMORY for each in mine.outputs):
            return Judgement(Verdict.NORMAL)
        if is_same_job and not self._is_thorough and _differ_as_roundings_do(mine, outputs):
            return Judgement(Verdict.NORMAL, basis=GOLDEN)
        normal = Verdict.NORMAL if golden is None or _are_equal(inputs, mine.inputs) else Verdict.INHERITED
        if is_random(mine.operator) and random_numbers.is_known(without_overload(mine.operator)):
            return self._judge_random(mine, normal)
        if is_large(mine) and not is_mere_view(mine):
            return self._judge_large(mine, golden if is_same else None, normal, is_same_job)
        return self._judge_by_reference(mine, golden, normal, is_same_job)

    def _judge_large(self, mine: Call, golden: Call | None, normal: Verdict, is_same_job: bool) -> Judgement:
        """In parts, each by itself; golden's too, where its tensors have the same shapes."""

        def judge(
            source: TensorSource, other: TensorSource | None, call: Call, counterpart: Call | None
        ) -> Judgement:
            inner = self if source is self._mine else Judge(source, other, is_thorough=self._is_thorough)
            return inner._judge_by_reference(call, counterpart, normal, is_same_job)

        alone = LargeCall(
            mine, self._mine, None, None, False, normal, self._is_thorough, self._held, self._sharing
        )
        if golden is None or self._golden is None or _shapes(golden) != _shapes(mine):
            return judge_large(alone, judge)
        both = replace(alone, golden=golden, golden_source=self._golden, is_same_job=is_same_job)
        return judge_large(both, judge)

    def _judge_by_reference(
        self, mine: Call, golden: Call | None, normal: Verdict, is_same_job: bool
    ) -> Judgement:
        try:
            # formulas refuse by themselves what they can't compute without random numbers
            if is_random(mine.operator) and formula_of(without_overload(mine.operator)) is None:
                raise CannotExecuteError("it draws random numbers of a distribution that is not known here")
            if (is_view(mine.operator) and has_gaps(mine)) or (is_large(mine) and is_mere_view(mine)):
                return judge_shapes(mine, normal)
            cleared = None if self._is_thorough else clear(mine, self._mine)
            if cleared is not None:
                return replace(cleared, verdict=normal)
            reference = Reference(mine, self._mine)
        except CannotExecuteError as reason:
            return Judgement(Verdict.UNKNOWN, why=_UNKNOWN.format(reason=reason))
        work = _CallWork(reference, normal, golden, is_same_job)
        free = decompositions.free_outputs(without_overload(mine.operator))
        judged = [
            self._judge_output(work, number) for number in different_contents(mine) if number not in free
        ]
        if free:
            judged.append(self._judge_parts(work, min(free)))
        known = [each for each in judged if each is not None]
        return max(known, key=badness, default=Judgement(Verdict.UNKNOWN, why=_NO_OUTPUT))

    def _judge_random(self, mine: Call, normal: Verdict) -> Judgement:
        try:
            if is_large(mine) and without_overload(mine.operator) not in random_numbers.OF_THE_WHOLE:
                parts = ((part.call, part) for part in parts_by_element(mine, self._mine))
                wrong = next(filter(None, starmap(_problem_of_random, parts)), None)
                strange = None
            else:
                wrong = _problem_of_random(mine, self._mine)
                strange = _problem_of_random(mine, self._mine, random_numbers.doubt)
        except CannotExecuteError as reason:
            return Judgement(Verdict.UNKNOWN, why=_UNKNOWN.format(reason=reason))
        said = wrong or strange
        if said is None:
            return Judgement(normal, basis=DISTRIBUTION)
        name = mine.outputs[0].name
        verdict = Verdict.FAULT if wrong is not None else Verdict.SUSPICIOUS
        why = SAID.format(output=name, what=said)
        return Judgement(verdict, ErrorKind.RANDOM, name, basis=DISTRIBUTION, why=why)

    def _judge_output(self, work: _CallWork, number: int) -> Judgement | None:
        record = work.call.outputs[number]
        right = work.reference.right[number]
        if right is None or (record.offset is None and record.elements):
            return None
        if tuple(right.shape) != record.shape:
            # of results that are only handed on to the backward pass, kernels choose the shape by dtype and device
            host = work.reference.of_host[number]
            is_main = number == 0 and (host is None or tuple(host.shape) != record.shape)
            return of_another_shape(record, right) if is_main else None
        if not record.elements:
            return work.is_fine(number, 0.0)
        result = self._result(work, number)
        if _is_another_choice(work, number, result, right):
            return work.is_fine(number, 0.0)
        compared = work.reference.compare(number, result, closely=False)
        if compared.errors.worst > 1.0 and work.reference.margins.compute:
            compared = work.reference.compare_typically(number, result) or compared
        if compared.errors.worst > 1.0 and work.reference.margins.compute:
            compared = work.reference.compare(number, result, closely=True)
        if compared.errors.worst > 1.0 and _is_right_from_flushed_inputs(work, number, result):
            return work.is_fine(number, compared.errors.relative)
        return self._weigh(work, number, compared)

    def _judge_parts(self, work: _CallWork, number: int) -> Judgement | None:
        """Of a decomposition: they may be others than the reference's, but together they must be right."""
        records = work.call.outputs
        if any(each.offset is None and each.elements for each in records):
            return None
        operator, arguments = without_overload(work.call.operator), work.reference.arguments()
        wrong = decompositions.problem(operator, arguments, [self._mine.tensor(each) for each in records])
        if wrong is None:
            return work.is_fine(number)
        host = decompositions.problem(operator, arguments, work.reference.of_host)
        if host is not None and wrong[0] <= work.reference.margins.margin * host[0]:
            return work.is_fine(number)
        verdict = Verdict.FAULT if wrong[0] > views().fault else Verdict.SUSPICIOUS
        name = records[number].name
        why = SAID.format(output=name, what=wrong[1])
        return Judgement(verdict, ErrorKind.VALUES, name, basis=FLOAT64, why=why)

    def _result(self, work: _CallWork, number: int) -> torch.Tensor:
        reference, records = work.reference, work.call.outputs
        if not is_order_free(without_overload(work.call.operator), reference.arguments()):
            return self._mine.tensor(records[number])
        found = [self._mine.tensor(each) if each.offset is not None else None for each in records]
        result = reference.in_order(found)[number]
        assert result is not None
        return result

    def _weigh(self, work: _CallWork, number: int, compared: Compared) -> Judgement:
        """Normal if golden, or the CPU, errs nearly as much."""
        record = work.call.outputs[number]
        errors, golden_error = compared.errors, None
        if errors.worst > 1.0:
            golden = self._golden_errors(work, number)
            golden_error = golden.relative if golden is not None else None
            others = [each for each in (golden, self._host_errors(work, number)) if each is not None]
            errors = errors.excused_by(others, work.reference.margins.margin)
        own, ratio = compared.errors.relative, errors.worst
        fine = Judgement(work.normal, ErrorKind.NONE, record.name, own, golden_error, basis=FLOAT64)
        if ratio <= 1.0:
            # what the elements of a result with few digits show only together; not of parts of one
            digits, leans = digits_of(record.dtype), None
            if digits is not None and digits.digits != digits.compute and not is_large(work.call):
                leans = leaning(work.reference, number, lambda: self._mine.tensor(record))
            if leans is None:
                return fine
            why = SAID.format(output=record.name, what=leans)
            return replace(fine, verdict=Verdict.SUSPICIOUS, sort=ErrorKind.MISREAD, why=why)
        limit = own / ratio if ratio else None
        if self._is_reduced(work, number, compared, self._mine):
            return replace(
                fine, verdict=Verdict.REDUCED, limit=limit, why=_FEWER_DIGITS.format(output=record.name)
            )
        verdict = Verdict.FAULT if ratio > views().fault else Verdict.SUSPICIOUS
        sort, what = sort_of(compared, self._context(work, number))
        why = SAID.format(output=record.name, what=what)
        return replace(fine, verdict=verdict, sort=sort, limit=limit, why=why)

    def _golden_errors(self, work: _CallWork, number: int) -> Errors | None:
        """Of golden's result, from its own inputs. One that was computed with fewer digits excuses nothing."""
        golden = work.golden
        if golden is None or self._golden is None or golden.operator != work.call.operator:
            return None
        if number >= len(golden.outputs) or golden.outputs[number].offset is None:
            return None
        try:
            reference = work.reference if work.is_same_job else Reference(golden, self._golden)
        except CannotExecuteError:
            return None
        right, result = reference.right[number], self._golden.tensor(golden.outputs[number])
        if right is None or right.shape != result.shape:
            return None
        compared = reference.compare(number, result, closely=True)
        theirs = _CallWork(reference, Verdict.NORMAL, None, False)
        if compared.errors.worst > 1.0 and self._is_reduced(theirs, number, compared, self._golden):
            return None
        return compared.errors

    def _host_errors(self, work: _CallWork, number: int) -> Errors | None:
        result = work.reference.of_host[number]
        right = work.reference.right[number]
        if result is None or right is None or result.shape != right.shape:
            return None
        if str(result.dtype).removeprefix("torch.") != work.call.outputs[number].dtype:
            return None
        return work.reference.compare(number, result, closely=True).errors

    def _is_reduced(self, work: _CallWork, number: int, compared: Compared, source: TensorSource) -> bool:
        """Of a whole layer, which cuts what goes from one part to the next as well, one result must be like it."""
        digits = digits_of(work.call.outputs[number].dtype)
        moved = work.reference.moved[number]
        reference, records = work.reference, work.call.outputs
        if not reference.margins.reduced or digits is None or moved is None:
            return False
        if digits.digits != digits.compute:
            return is_split(compared, moved, digits.digits)
        if not is_small_enough(compared, moved):
            return False
        if is_alike(compared, reference, number):
            return True
        others = range(len(records)) if reference.margins.inner else ()
        return any(
            is_alike(reference.compare(each, source.tensor(records[each]), closely=True), reference, each)
            for each in others
            if records[each].offset is not None and reference.right[each] is not None
        )

    def _context(self, work: _CallWork, number: int) -> Context:
        record = work.call.outputs[number]
        name = record.name.partition("/")[2]
        inputs = list(zip((each.name for each in work.call.inputs), work.reference.given, strict=True))
        before = next((tensor for each, tensor in inputs if each == f"input/{name}"), None)
        addends = [each for each in inputs if each[1].is_floating_point() and each[1] is not before]

        def earlier() -> tuple[int, torch.Tensor] | None:
            known = self._known.get(work.call.number, {})
            found = known.get((work.call.operator, record.name, record.shape))
            if found is None or found[1].offset is None:
                return None
            return found[0], self._mine.tensor(found[1])

        return Context(
            record.shape,
            before,
            addends,
            earlier,
            misread=partial(misreadings, work.reference, number),
            unread=partial(unread_inputs, work.reference, number),
        )


@dataclass(frozen=True)
class _CallWork:
    reference: Reference
    normal: Verdict  # what is said of it if nothing is wrong
    golden: Call | None
    is_same_job: bool  # golden's has the same inputs

    @property
    def call(self) -> Call:
        return self.reference.call

    def is_fine(self, number: int, error: float | None = None) -> Judgement:
        """What is said of an output that is as it should be."""
        name = self.call.outputs[number].name
        return Judgement(self.normal, output=name, own_error=error, basis=FLOAT64)


def _problem_of_random(
    call: Call, source: TensorSource, problem: random_numbers.Problem = random_numbers.problem
) -> Text | None:
    results = [source.tensor(record) if record.offset is not None else None for record in call.outputs]
    arguments = make_arguments(call, read_inputs(source, call), Setting())
    return problem(without_overload(call.operator), arguments, results)


def _shapes(call: Call) -> list[tuple[str, tuple[int, ...]]]:
    return [(record.name, record.shape) for record in (*call.inputs, *call.outputs)]


def _are_equal(differences: Sequence[PairDifference], tensors: Sequence[TensorRecord]) -> bool:
    """Whether all tensors of a call are known to be the same. One that holds nothing, or is not read, is."""
    if len(differences) != len(tensors):
        return False
    return all(
        each.metrics.is_equal
        if each.metrics is not None
        else each.mine.shape == each.golden.shape
        and (bool(each.mine.unread and each.golden.unread) or not each.mine.elements)
        for each in differences
    )


def _are_views_nobody_read(call: Call, differences: Sequence[PairDifference]) -> bool:
    """Whether no contents were kept of tensors of equal shapes, because they were only looked at in another way."""
    return is_view(call.operator) and all(
        each.mine.offset is None
        and each.golden.offset is None
        and (each.mine.shape, each.mine.stride) == (each.golden.shape, each.golden.stride)
        for each in differences
    )


def _differ_as_roundings_do(call: Call, outputs: Sequence[PairDifference]) -> bool:
    """Whether single elements, and few of them, are rounded to the other side than golden's."""
    if not margins_of(call.operator).compute or len(outputs) != len(call.outputs):
        return False
    return all(
        each.metrics is not None
        and not each.metrics.wrong_nonfinite
        and each.metrics.max_ulp <= 1.0
        and each.metrics.mean_ulp <= _FLIPPED
        for each in outputs
    )


def _is_right_from_flushed_inputs(work: _CallWork, number: int, result: torch.Tensor) -> bool:
    flushed = work.reference.of_flushed_inputs()
    right = flushed.right[number] if flushed is not None else None
    if flushed is None or right is None or right.shape != result.shape:
        return False
    return flushed.compare(number, result, closely=True).errors.worst <= 1.0


def _is_another_choice(work: _CallWork, number: int, result: torch.Tensor, right: torch.Tensor) -> bool:
    operator, arguments = without_overload(work.call.operator), work.reference.arguments()
    if result.is_floating_point() or torch.equal(result, right):
        return False
    if are_positions(operator, number):
        return point_to_equal_values(operator, arguments, result, right)
    return differ_where_casts_are_undefined(operator, arguments, result, right)
