"""Gradients as the optimizer reads them, and weights after its step, of several processes against those of fewer. No
torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from torchferry.accuracy.compare.layouts import (
    Array,
    RankLayout,
    SampleRows,
    Way,
    best_fit,
    distance,
    made_up,
    root_mean_square,
    values_of,
)
from torchferry.accuracy.compare.lineup import AlignedCalls
from torchferry.accuracy.compare.passes import Passes, shape_of, spot_of
from torchferry.accuracy.compare.programs import ArgumentDifference, different_arguments
from torchferry.accuracy.compare.reduction import Reduction, ReductionKind, reduction_of
from torchferry.accuracy.compare.stages import LaidOut, Outcome, StageResult, StepStage
from torchferry.accuracy.compare.statistics import AMPLIFICATION, EPSILONS, rounding
from torchferry.accuracy.compare.updates import OptimizerStep
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import Call, TensorRecord, TensorRef, Value
from torchferry.text import Text

_COARSE = 2.0  # times what rounding of one call in fewer digits explains
_CHECKED, _LARGEST = 4, 1 << 20  # gradients that are looked at by themselves, of so many elements at most
_FAINT = 1e-3  # of the largest gradient of a step: what rounding of smaller ones is relative to
_EQUALLY = 0.01  # by which shares of ranks differ before they are said to
_RELIABLE = 0.02  # by which an element of a gradient may differ for its update to be looked at
_UPDATES = 0.05  # by which updates may differ
_HELD = (Way.SAME, Way.SPLIT)  # how ranks may hold gradients and weights
_ARGUMENTS_SAID = 3  # operators whose arguments are said
_ROUNDED = 4.0  # roundings of a weight, in the difference of two updates

_SUMMED = Text(
    "gradients are {times} times too large: summed over the ranks instead of averaged",
    "梯度是应有值的 {times} 倍：各 rank 的梯度被求和，而没有取平均",
)
_SHARES = Text(
    "gradients are {times} times the correct value: averaged over the ranks, although the loss of "
    "each rank is already its share of the whole (a sum, or divided by the global batch)",
    "梯度是正确值的 {times} 倍：各 rank 的梯度取了平均，而各 rank 的损失已经只是整体的一份（求和，"
    "或已除以全局批次）",
)
_OTHER_LOSS = Text(
    "gradients are {times} times the correct value: averaging is correct, but the loss of each rank "
    "is not the mean over its samples",
    "梯度是正确值的 {times} 倍：取平均没有问题，但各 rank 的损失不是其样本的平均",
)
_TIMES = Text("gradients are {times} times the correct value", "梯度是正确值的 {times} 倍")
_LOST = Text(
    "the reduced gradients do not include those of rank {ranks}", "归约后的梯度不包含 rank {ranks} 的梯度"
)
_KEPT = Text(
    "{gradient} is not reduced: each rank keeps its own gradient (is the parameter outside the model "
    "that DistributedDataParallel wraps, or in its ignore list?)",
    "{gradient} 没有归约：每个 rank 使用自己的梯度（该参数是否不属于 DistributedDataParallel "
    "包装的模型，或在其忽略列表中？）",
)
_UNEVEN = Text(
    "the gradients of the ranks are added with different weights", "各 rank 的梯度以不同的权重相加"
)
_APART = Text(
    "rank {ranks} continues with a different gradient from rank 0", "rank {ranks} 使用的梯度与 rank 0 的不同"
)
_NO_SUM = Text(
    "{gradient}: the gradient that the optimizer reads is not a weighted sum of the ranks' gradients "
    "(clipped, compressed or modified in between?)",
    "{gradient}：优化器读取的梯度不是各 rank 梯度的加权和（中途是否被裁剪、压缩或修改？）",
)
_UNLIKE = Text(
    "{gradient}: differs from the other side after the reduction", "{gradient}：归约后与对方的不同"
)
_ONE_OF = Text("{said} ({count} of {total} gradients)", "{said}（{total} 个梯度中的 {count} 个）")
_RIGHT_BY_ITSELF = Text(
    "they are the mean of the ranks' own gradients; the computation on the ranks already differs before that",
    "它们是各 rank 梯度的平均；各 rank 的计算在此之前已不同",
)
_COUNTS = Text(
    "rank {rank} updates {many} parameters with {gradients} gradients, the other side {few}, so they "
    "can't be matched by their order",
    "rank {rank} 用 {gradients} 个梯度更新 {many} 个参数，对方为 {few} 个：无法按顺序对应",
)
_ARGUMENTS = Text(
    "the optimizer's step has different arguments (learning rate, weight decay?): {arguments}",
    "优化器更新的参数不同（学习率、权重衰减？）：{arguments}",
)
_ARGUMENT = Text(
    "{operator}: {name} is {many} on the ranks, {few} on the other side",
    "{operator}：{name} 在各 rank 上为 {many}，对方为 {few}",
)
_APART_AFTER = Text(
    "{weight}: after the step the weights differ between the ranks",
    "{weight}：更新之后各 rank 的权重已不一致",
)
_OTHER_UPDATE = Text(
    "{weight}: the update differs although gradient and arguments are equal",
    "{weight}：梯度和参数相同，更新量却不同",
)


_Kind = Callable[[OptimizerStep], Sequence[TensorRecord]]  # which tensors of a step


@dataclass(frozen=True)
class ProcessSteps:
    """The processes of one run, at one step."""

    records: Sequence[Record]
    steps: Sequence[OptimizerStep]

    def arrays(self, tensors: Sequence[TensorRecord]) -> list[Array] | None:
        """One tensor of each process; None: one has no contents."""
        found = [values_of(record, tensor) for record, tensor in zip(self.records, tensors, strict=True)]
        return None if any(each is None for each in found) else [each for each in found if each is not None]


@dataclass(frozen=True)
class _Weight:
    """What became of one weight."""

    name: str
    are_apart: bool  # the ranks no longer have the same
    distance: float  # between its updates on both sides


@dataclass(frozen=True)
class _Gradient:
    """One gradient of all processes, as the optimizer reads it."""

    name: str
    many: list[Array]
    few: list[Array]
    limit: float
    size: float

    @property
    def is_small(self) -> bool:
        """Whether it is quickly looked at once more."""
        return self.few[0].ndim > 1 and self.few[0].size <= _LARGEST


@dataclass(frozen=True)
class _Wrong:
    """A gradient that is not the other side's, and why."""

    name: str
    reduction: Reduction
    said: Text | None  # None: what went in differs
    distance: float | None
    limit: float


class GradientComparison:
    """Of one step."""

    def __init__(self, many: ProcessSteps, few: ProcessSteps, step: int, passes: Passes) -> None:
        self._many, self._few, self._step = many, few, step
        self._precision, self._sizes = passes.precision, passes.sizes
        self._relative = len(many.records) / len(few.records)
        self.layouts: dict[tuple[str, RankLayout], LaidOut] = {}
        self._holders = self._found_holders()

    def _found_holders(self) -> list[tuple[int, int]] | None:
        """The rank that has each parameter alone, and its position there, as ZeRO divides them; None: it is not so."""
        first = self._few.steps[0]
        lists = [each.before() for each in self._many.steps]
        if len(lists) < 2 or not lists[0] or sum(map(len, lists)) != len(first.parameters):
            return None
        free = [(rank, at) for rank, tensors in enumerate(lists) for at in range(len(tensors))]
        found = []
        for wanted, tensor in enumerate(first.before()):
            alike = [place for place in free if lists[place[0]][place[1]].shape == tensor.shape]
            if not alike:
                return None
            nearest = min(alike, key=lambda place: self._apart(wanted, place))
            free.remove(nearest)
            found.append(nearest)
        return found

    def _apart(self, wanted: int, place: tuple[int, int]) -> tuple[float, ...]:
        """How far a parameter of a rank is from one of the few; of those that begin alike, as those of norms, the gradients
        decide."""
        rank, at = place
        found = []
        for kind in (OptimizerStep.before, OptimizerStep.read):
            ours, theirs = (
                kind(self._many.steps[rank])[at : at + 1],
                kind(self._few.steps[0])[wanted : wanted + 1],
            )
            one = values_of(self._many.records[rank], ours[0]) if ours else None
            other = values_of(self._few.records[0], theirs[0]) if theirs else None
            is_known = one is not None and other is not None and one.shape == other.shape
            found.append(
                distance(one, other) if is_known and one is not None and other is not None else math.inf
            )
        return tuple(found)

    def reduction(self, *, has_parted: bool) -> StageResult | None:
        """Whether the gradients that the optimizer reads are the other side's."""
        problem = self._uncounted()
        if problem is not None:
            return StageResult(self._step, StepStage.REDUCTION, Outcome.UNKNOWN, why=problem)
        compared, wrong, small = 0, list[_Wrong](), 0
        for gradient in self._gradients():
            compared += 1
            found = best_fit(gradient.many, gradient.few, SampleRows(), gradient.size, gradient.limit, _HELD)
            fits = found is not None and found.distance <= gradient.limit
            reduction = None
            if not fits:
                reduction = self._reduction(gradient)
            elif small < _CHECKED and gradient.is_small:  # rounding may hide one rank of many
                small += 1
                reduction = self._reduction(gradient)
                fits = reduction.kind is not ReductionKind.LOST
            if fits and found is not None:
                self._lay_out("gradient", found.layout, gradient.name)
            elif reduction is not None:
                said = self._said(gradient, reduction, has_parted=has_parted)
                apart = found.distance if found is not None else None
                wrong.append(_Wrong(gradient.name, reduction, said, apart, gradient.limit))
        if wrong:
            return self._of_wrong(wrong, compared, has_parted=has_parted)
        return StageResult(self._step, StepStage.REDUCTION, Outcome.FITS, compared) if compared else None

    def _uncounted(self) -> Text | None:
        count = len(self._few.steps[0].gradients)
        for rank, each in enumerate(self._many.steps if self._holders is None else ()):
            if len(each.gradients) != count and not self._is_flat():
                return _COUNTS.format(
                    rank=rank, many=len(each.parameters), gradients=len(each.gradients), few=count
                )
        return None

    def _is_flat(self) -> bool:
        """Whether all pieces of all ranks, one after the other, have as many elements as the other side's gradients."""
        pieces = sum(_elements(each.gradients) for each in self._many.steps)
        return len(self._few.records) == 1 and pieces == _elements(self._few.steps[0].gradients)

    def _gradients(self) -> Iterator[_Gradient]:
        """One after the other: all of a large model's would fill the memory."""
        first = self._few.steps[0]
        own = (values_of(self._few.records[0], each) for each in first.gradients)
        largest = max((root_mean_square(each) for each in own if each is not None), default=0.0)
        for at, tensor in enumerate(first.gradients):
            few = self._few.arrays([each.gradients[at] for each in self._few.steps])
            many = self._many_arrays(at, OptimizerStep.read)
            if few is not None and many is not None:
                limit = max(rounding([tensor]) * AMPLIFICATION, _COARSE * self._precision)
                size = max(self._sizes.get(tensor.content, 0.0), _FAINT * largest)
                yield _Gradient(self._name(at, tensor), many, few, limit, size)
                for record in (*self._many.records, *self._few.records):
                    record.release()

    def _many_arrays(self, at: int, kind: _Kind) -> list[Array] | None:
        """One tensor of each of the many; where each has its share of one long row, the piece that belongs to it."""
        lists = [kind(each) for each in self._many.steps]
        wanted = kind(self._few.steps[0])
        if self._holders is not None:
            rank, place = self._holders[at]
            found = (
                values_of(self._many.records[rank], lists[rank][place]) if place < len(lists[rank]) else None
            )
            return None if found is None else [found]
        if all(len(each) == len(wanted) for each in lists):
            return self._many.arrays([each[at] for each in lists])
        if not self._is_flat():
            return None
        pieces = [
            values_of(record, tensor)
            for record, tensors in zip(self._many.records, lists, strict=True)
            for tensor in tensors
        ]
        flat = np.concatenate([each.reshape(-1) for each in pieces if each is not None])
        start = _elements(wanted[:at])
        made = flat[start : start + _elements(wanted[at : at + 1])]
        return [made.reshape(wanted[at].shape)] if made.size == _elements(wanted[at : at + 1]) else None

    def _name(self, at: int, tensor: TensorRecord) -> str:
        first = self._few.steps[0]
        made = first.gradients[at].content if at < len(first.gradients) else 0
        module = first.modules.get(made, "")
        return ", ".join(filter(None, (f"no. {at + 1}", module, shape_of(tensor))))

    def _of_wrong(self, wrong: Sequence[_Wrong], total: int, *, has_parted: bool) -> StageResult:
        kinds = Counter(each.reduction.kind for each in wrong)
        for each in wrong:
            if each.said is None:
                continue
            why = _ONE_OF.format(said=each.said, count=kinds[each.reduction.kind], total=total)
            rank = each.reduction.ranks[0] if len(each.reduction.ranks) == 1 else None
            place = (rank, None, each.name, each.distance, each.limit)
            return StageResult(self._step, StepStage.REDUCTION, Outcome.PARTS, total, why, *place)
        if not has_parted:
            why = _UNLIKE.format(gradient=wrong[0].name)
            return StageResult(self._step, StepStage.REDUCTION, Outcome.UNKNOWN, total, why)
        why_not = _RIGHT_BY_ITSELF if set(kinds) == {ReductionKind.MEAN} else None
        return StageResult(self._step, StepStage.REDUCTION, Outcome.FOLLOWS, total, why_not)

    def _reduction(self, gradient: _Gradient) -> Reduction:
        """By the ranks' own gradients of that shape which explain it best."""
        shape = gradient.few[0].shape
        after = gradient.many
        if any(each.shape != shape for each in after):
            joined = np.concatenate(after, 0)
            if joined.shape != shape:
                return Reduction(ReductionKind.UNKNOWN)
            after = [joined]
        own = [[each for each in step.own if each.shape == shape] for step in self._many.steps]
        best = Reduction(ReductionKind.UNKNOWN)
        for tensors in zip(*own, strict=False):
            before = self._many.arrays(tensors)
            if before is None:
                continue
            found = reduction_of(before, after)
            if found.kind not in (ReductionKind.OTHER, ReductionKind.UNKNOWN):
                return found
            if found.kind is ReductionKind.OTHER:
                best = found
        return best

    def _said(self, gradient: _Gradient, reduction: Reduction, *, has_parted: bool) -> Text | None:
        """What is wrong with a reduction; None: nothing, what went in differs."""
        kind, ranks = reduction.kind, ", ".join(map(str, reduction.ranks))
        if kind is ReductionKind.LOST:
            return _LOST.format(ranks=ranks)
        if kind is ReductionKind.OWN:
            return _KEPT.format(gradient=gradient.name)
        if kind is ReductionKind.APART:
            return _APART.format(ranks=ranks)
        if kind is ReductionKind.UNEVEN:
            return _UNEVEN
        times = _times_of(gradient)
        if times is not None:
            return self._of_factor(times, kind)
        if kind is ReductionKind.OTHER and not has_parted:
            return _NO_SUM.format(gradient=gradient.name)
        return None

    def _of_factor(self, times: float, kind: ReductionKind) -> Text | None:
        """A right sum, times something."""
        is_whole = abs(times - self._relative) < _EQUALLY * times
        if kind is ReductionKind.SUM or (kind is ReductionKind.UNKNOWN and is_whole):
            return _SUMMED.format(times=_shown(times))
        if kind is ReductionKind.MEAN:
            said = _SHARES if abs(times * self._relative - 1) < _EQUALLY else _OTHER_LOSS
            return said.format(times=_shown(times))
        return _TIMES.format(times=_shown(times))

    # The optimizer's arguments, and what it makes of the weights.

    def optimizer(self, groups: Sequence[AlignedCalls]) -> StageResult | None:
        """Whether its calls have the same arguments on both sides."""
        found: dict[str, tuple[AlignedCalls, int, ArgumentDifference]] = {}
        for group in groups:
            for rank, call in enumerate(group.many):
                several = different_arguments(*_plain_arguments(call, group.few[0]), is_complete=True)
                if several:
                    found.setdefault(call.operator, (group, rank, several[0]))
        if not found:
            return StageResult(self._step, StepStage.OPTIMIZER, Outcome.FITS, len(groups)) if groups else None
        said = [
            _ARGUMENT.format(operator=operator, name=each.name, many=each.mine, few=each.golden)
            for operator, (_, _, each) in found.items()
        ][:_ARGUMENTS_SAID]
        listed = Text("; ".join(each.en for each in said), "；".join(each.zh for each in said))
        group, rank, _ = next(iter(found.values()))
        why = _ARGUMENTS.format(arguments=listed)
        which = rank if rank else None  # those of the first are those of all, as a rule
        return StageResult(
            self._step, StepStage.OPTIMIZER, Outcome.PARTS, len(groups), why, which, spot_of(group.few[0])
        )

    def update(self, *, has_parted: bool) -> StageResult | None:
        """Whether the weights after the step are the other side's."""
        count = len(self._few.steps[0].parameters)
        compared = 0
        for at in range(count):
            weight = self._weight(at)
            if weight is None:
                continue
            compared += 1
            said = None
            if weight.are_apart:
                said = _APART_AFTER
            elif not has_parted and weight.distance > _UPDATES:
                said = _OTHER_UPDATE
            if said is not None:
                why = said.format(weight=weight.name)
                apart = None if weight.are_apart else weight.distance
                place = (None, None, weight.name, apart, _UPDATES)
                return StageResult(self._step, StepStage.UPDATE, Outcome.PARTS, compared, why, *place)
        outcome = Outcome.FOLLOWS if has_parted else Outcome.FITS
        return StageResult(self._step, StepStage.UPDATE, outcome, compared) if compared else None

    def _weight(self, at: int) -> _Weight | None:
        """A weight before and after the step; None: it can't be compared."""
        first = self._few.steps[0].parameters[at]
        before, after = (self._many_arrays(at, kind) for kind in (OptimizerStep.before, OptimizerStep.after))
        few_before, few_after = (
            self._few.arrays([kind(step)[at] for step in self._few.steps])
            for kind in (OptimizerStep.before, OptimizerStep.after)
        )
        if before is None or after is None or few_before is None or few_after is None:
            return None
        limit = rounding([first.after])
        start = best_fit(before, few_before, SampleRows(), 0.0, limit, _HELD)
        if start is None or start.distance > limit:
            return None
        name = self._name(at, first.before)
        self._lay_out("parameter", start.layout, name)
        are_apart = start.layout.way is Way.SAME and any(
            not np.array_equal(after[0], each) for each in after[1:]
        )
        one, other = (made_up(each, start.layout) for each in (before, after))
        few_one, few_other = (made_up(each, start.other) for each in (few_before, few_after))
        apart = self._between_updates(at, other - one, few_other - few_one, root_mean_square(few_one))
        return _Weight(name, are_apart, apart)

    def _between_updates(self, at: int, mine: Array, other: Array, size: float) -> float:
        """How far two updates are apart where their gradients are alike, relative to the other side's."""
        reliable = self._reliable(at, other.shape)
        mine, other = mine[reliable], other[reliable]
        off = root_mean_square(mine - other)
        dtype = self._few.steps[0].parameters[at].after.dtype
        if not other.size or off <= _ROUNDED * EPSILONS.get(dtype, 0.0) * size:
            return 0.0
        scale = root_mean_square(other)
        return off / scale if scale else math.inf

    def _reliable(self, at: int, shape: tuple[int, ...]) -> Array:
        """Elements whose gradients are alike: where one is rounding alone, an optimizer may make a full step of it."""
        everything = np.ones(shape, dtype=bool)
        first = self._few.steps[0]
        if len(first.gradients) != len(first.parameters):
            return everything
        few = self._few.arrays([step.gradients[at] for step in self._few.steps])
        many = self._many_arrays(at, OptimizerStep.read)
        found = (
            best_fit(many, few, SampleRows(), 0.0, 0.0, _HELD)
            if few is not None and many is not None
            else None
        )
        if found is None or few is None or many is None:
            return everything
        made, meant = made_up(many, found.layout), made_up(few, found.other)
        alike = np.abs(made - meant) <= _RELIABLE * np.abs(meant)
        return alike if alike.shape == shape else everything

    def _lay_out(self, role: str, layout: RankLayout, name: str) -> None:
        layout = layout if self._holders is None else RankLayout(Way.ONE)
        known = self.layouts.get((role, layout))
        count = known.count + 1 if known is not None else 1
        self.layouts[role, layout] = LaidOut(
            role, layout, count, known.example if known is not None else name
        )


def _plain_arguments(*calls: Call) -> list[Call]:
    """The calls without their tensors, and without lists that are as long as those are."""
    lists = [
        {name: len(value) for name, value in each.arguments if isinstance(value, tuple)} for each in calls
    ]
    other = {name for name in lists[0] if lists[0][name] != lists[1].get(name)}
    return [
        replace(
            each,
            arguments=tuple(one for one in each.arguments if one[0] not in other and not _is_tensor(one[1])),
        )
        for each in calls
    ]


def _is_tensor(value: Value) -> bool:
    return isinstance(value, TensorRef) or (isinstance(value, tuple) and any(map(_is_tensor, value)))


def _elements(tensors: Sequence[TensorRecord]) -> int:
    return sum(math.prod(each.shape) for each in tensors)


def _times_of(gradient: _Gradient) -> float | None:
    """How often the gradient of the first rank is the other side's; None: it is no multiple of it."""
    one, other = gradient.many[0], gradient.few[0]
    if one.shape != other.shape or not root_mean_square(other):
        return None
    times = float(np.vdot(one, other)) / float(np.vdot(other, other))
    is_multiple = root_mean_square(one - times * other) <= _EQUALLY * root_mean_square(one)
    return times if is_multiple and abs(times - 1) > _EQUALLY else None


def _shown(number: float) -> str:
    return f"{number:.4g}"
