"""Compares the recordings of two runs, step by step and rank by rank. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from torchferry.proof.model import ProofVerdict, RunDifference, StepRecord, TensorFacts, What
from torchferry.proof.recordings import Recording
from torchferry.text import Text

# How far two tensors may be apart, and how far they are.

# dtype -> (relative, absolute), those of torch.testing.assert_close; a dtype that is not here must be equal
_DEFAULTS = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


@dataclass(frozen=True)
class Tolerance:
    """What a user allows; None: what the dtype allows."""

    rtol: float | None = None
    atol: float | None = None

    def allows(self, reference: TensorFacts, migrated: TensorFacts) -> float:
        """The largest distance; of two dtypes, the coarser one decides.

        Element by element it would be |a - b| <= atol + rtol * |a|; this is the same over the whole tensor.
        """
        defaults = [_DEFAULTS.get(facts.dtype, (0.0, 0.0)) for facts in (reference, migrated)]
        inexact = all(facts.dtype in _DEFAULTS for facts in (reference, migrated))
        rtol = max(default[0] for default in defaults) if self.rtol is None else self.rtol
        atol = max(default[1] for default in defaults) if self.atol is None else self.atol
        norm = reference.norm if math.isfinite(reference.norm) else 0.0
        return atol * math.sqrt(math.prod(reference.shape)) + rtol * norm if inexact else 0.0


EXACT = Tolerance(0.0, 0.0)


def distance(reference: TensorFacts, migrated: TensorFacts) -> float:
    """The l2 distance, estimated; inf where one of the two is not finite."""
    if reference.checksum == migrated.checksum:
        return 0.0
    if not (math.isfinite(reference.norm) and math.isfinite(migrated.norm)):
        return math.inf
    return max(reference.projected_distance(migrated), abs(reference.norm - migrated.norm))


def relative(apart: float, reference: TensorFacts | None) -> float:
    """A distance as a share of the reference's norm."""
    if apart == 0:
        return 0.0
    if reference is None or not reference.norm or not math.isfinite(reference.norm):
        return math.inf
    return apart / reference.norm


_PROCESSES = Text(
    "different processes made optimizer steps: {reference} in the original, {migrated} in the "
    "migrated run{hint}",
    "执行优化步的进程不同：原程序为 {reference}，迁移后为 {migrated}{hint}",
)
_SHARED_OUT = Text(
    "; a program rewritten for several cards (--distributed) receives its samples in another order "
    "and can't be compared step by step; prove the conversion without that option",
    "；用 --distributed 改写为多卡的程序，其样本顺序随之改变，无法逐步比较；请验证不带该选项的转换结果",
)
_NO_STEP = Text("no process", "没有进程")
_UNRANKED = Text("one process", "单个进程")
_STEPS = Text(
    "the original made {reference} optimizer steps{rank}, the migrated run {migrated}",
    "原程序执行了 {reference} 个优化步{rank}，迁移后为 {migrated} 个",
)
_OPTIMIZER = Text(
    "step {step}{rank} is a step of optimizer {reference} in the original, of optimizer {migrated} "
    "in the migrated run",
    "第 {step} 步{rank}：原程序为优化器 {reference}，迁移后为优化器 {migrated}",
)
_LOSSES = Text(
    "before step {step}{rank} the original called backward {reference} times, the migrated run "
    "{migrated} times (steps skipped by GradScaler: {reference_skipped} and {migrated_skipped})",
    "第 {step} 步之前{rank}，原程序调用 backward {reference} 次，迁移后 {migrated} 次（GradScaler "
    "跳过的步数：{reference_skipped} 与 {migrated_skipped}）",
)
_COUNT = Text(
    "at step {step}{rank} the original's optimizer has {reference} parameters, the migrated run's {migrated}",
    "第 {step} 步{rank}：原程序的优化器有 {reference} 个参数，迁移后有 {migrated} 个",
)
_SHAPE = Text(
    "at step {step}{rank} the shape of {name} is {reference} in the original, {migrated} in the migrated run",
    "第 {step} 步{rank}：{name} 的形状在原程序中为 {reference}，迁移后为 {migrated}",
)
_SCALES = Text(
    "the GradScaler's factor differs from step {step}{rank} on: {reference} in the original, "
    "{migrated} in the migrated run (1: no scaling); losses and gradients are compared without it",
    "GradScaler 的缩放因子从第 {step} 步{rank}起不同：原程序为 {reference}，迁移后为 {migrated}（1 "
    "表示不缩放）；损失和梯度按去除该因子后的值比较",
)
_RANK = Text(" of rank {rank}", "（rank {rank}）")
_NOTHING = Text("", "")


@dataclass(frozen=True)
class ProofComparison:
    """What came out of comparing two runs."""

    verdict: ProofVerdict
    compared_steps: int  # of all processes together
    reason: Text | None = None
    parting: RunDifference | None = None
    largest: RunDifference | None = None
    # the first one at all, of any size: what led to the parting began there
    earliest: RunDifference | None = None
    notes: tuple[Text, ...] = ()


@dataclass
class _ProcessComparison:
    """The comparison of one process with its counterpart, up to where it ended."""

    rank: int | None
    steps: int = 0
    largest: RunDifference | None = None
    parting: RunDifference | None = None
    reason: Text | None = None
    earliest: RunDifference | None = None
    scales: Text | None = None

    def end(self) -> tuple[int, int]:
        """Which process's end comes first."""
        return self.steps + (self.reason is not None), self.rank or 0


class _MismatchError(Exception):
    def __init__(self, reason: Text) -> None:
        super().__init__(reason.en)
        self.reason = reason


def compare(
    reference: Sequence[Recording],
    migrated: Sequence[Recording],
    tolerance: Tolerance,
    until: int | None = None,
) -> ProofComparison:
    """The verdict on two runs that have both ended well; `until` is the last step to look at, None: all."""
    if [each.key for each in reference] != [each.key for each in migrated]:
        return ProofComparison(ProofVerdict.INCOMPARABLE, 0, _other_processes(reference, migrated))
    pairs = zip(reference, migrated, strict=True)
    found = [_compare_processes(one, other, tolerance, until) for one, other in pairs]
    steps = sum(each.steps for each in found)
    largest = max(filter(None, (each.largest for each in found)), key=_share, default=None)
    earliest = min(filter(None, (each.earliest for each in found)), key=lambda each: each.step, default=None)
    notes = tuple([each.scales for each in found if each.scales][:1])
    ended = [each for each in found if each.parting or each.reason]
    if ended:
        first = min(ended, key=_ProcessComparison.end)
        verdict = ProofVerdict.PARTED if first.parting else ProofVerdict.INCOMPARABLE
        return ProofComparison(verdict, steps, first.reason, first.parting, largest, earliest, notes)
    verdict = ProofVerdict.CLOSE if largest else ProofVerdict.EQUAL
    return ProofComparison(verdict, steps, largest=largest, earliest=earliest, notes=notes)


def _compare_processes(
    reference: Recording, migrated: Recording, tolerance: Tolerance, until: int | None
) -> _ProcessComparison:
    rank = reference.identity.rank
    found = _ProcessComparison(rank)
    try:
        for one, other in islice(zip_longest(reference.steps(), migrated.steps()), until):
            if one is None or other is None:
                counts = [sum(1 for _ in recording.steps()) for recording in (reference, migrated)]
                said = _STEPS.format(reference=counts[0], migrated=counts[1], rank=_rank(rank))
                raise _MismatchError(said)
            _check_structure(one, other, rank)
            found.steps += 1
            found.scales = found.scales or _other_scale(one, other, rank)
            for difference in _differences(one, other, rank, tolerance):
                found.earliest = found.earliest or difference
                found.largest = max(filter(None, (found.largest, difference)), key=_share)
                if difference.distance > difference.tolerance:
                    found.parting = difference
                    return found
    except _MismatchError as mismatch:
        found.reason = mismatch.reason
    return found


def _other_scale(one: StepRecord, other: StepRecord, rank: int | None) -> Text | None:
    """What is to be said of a GradScaler that multiplies by another factor in one of the runs."""
    for first, second in zip(one.losses, other.losses, strict=True):
        if first.scale != second.scale:
            factors = {"reference": f"{first.scale:g}", "migrated": f"{second.scale:g}"}
            return _SCALES.format(step=one.ordinal, rank=_rank(rank), **factors)
    return None


def _share(difference: RunDifference) -> float:
    """How much of what is allowed a difference uses up."""
    return difference.distance / difference.tolerance if difference.tolerance else math.inf


def _check_structure(one: StepRecord, other: StepRecord, rank: int | None) -> None:
    def mismatch(said: Text, reference: object, migrated: object, **more: object) -> _MismatchError:
        place = {"step": one.ordinal, "rank": _rank(rank)}
        return _MismatchError(said.format(**place, reference=reference, migrated=migrated, **more))

    if one.optimizer != other.optimizer:
        raise mismatch(_OPTIMIZER, *(f"{step.optimizer} ({step.optimizer_type})" for step in (one, other)))
    if (len(one.losses), one.skipped) != (len(other.losses), other.skipped):
        skipped = {"reference_skipped": one.skipped, "migrated_skipped": other.skipped}
        raise mismatch(_LOSSES, len(one.losses), len(other.losses), **skipped)
    if len(one.parameters) != len(other.parameters):
        raise mismatch(_COUNT, len(one.parameters), len(other.parameters))
    for _, name, first, second in _tensors(one, other):
        if first is not None and second is not None and first.shape != second.shape:
            raise mismatch(_SHAPE, list(first.shape), list(second.shape), name=name)


def _tensors(
    one: StepRecord, other: StepRecord
) -> Iterator[tuple[What, str, TensorFacts | None, TensorFacts | None]]:
    """What corresponds: losses and parameters by their order, buffers, of which modules may hide some, by name."""
    for loss, others in zip(one.losses, other.losses, strict=True):
        yield What.LOSS, loss.place, loss.facts, others.facts
    for gradient, its in zip(one.gradients, other.gradients, strict=True):
        yield What.GRADIENT, gradient.name, gradient.facts, its.facts
    for parameter, its in zip(one.parameters, other.parameters, strict=True):
        yield What.PARAMETER, parameter.name, parameter.facts, its.facts
    there = {buffer.name: buffer.facts for buffer in other.buffers}
    for buffer in one.buffers:
        if buffer.name in there:
            yield What.BUFFER, buffer.name, buffer.facts, there[buffer.name]


def _differences(
    one: StepRecord, other: StepRecord, rank: int | None, tolerance: Tolerance
) -> Iterator[RunDifference]:
    for what, name, first, second in _tensors(one, other):
        if first == second or (first and second and first.checksum == second.checksum):
            continue
        apart = distance(first, second) if first and second else math.inf
        allowed = tolerance.allows(first, second) if first and second else 0.0
        share = relative(apart, first)
        yield RunDifference(
            what, one.ordinal, rank, one.optimizer, name, first, second, apart, share, allowed
        )


def _rank(rank: int | None) -> Text:
    return _NOTHING if rank is None else _RANK.format(rank=rank)


def _other_processes(reference: Sequence[Recording], migrated: Sequence[Recording]) -> Text:
    names = _ranks(reference), _ranks(migrated)
    was_rewritten = names[0] is _UNRANKED and all(each.identity.rank is not None for each in migrated)
    hint = _SHARED_OUT if was_rewritten and migrated else _NOTHING
    return _PROCESSES.format(reference=names[0], migrated=names[1], hint=hint)


def _ranks(recordings: Sequence[Recording]) -> Text:
    if not recordings:
        return _NO_STEP
    ranks = [recording.identity.rank for recording in recordings]
    if ranks == [None]:
        return _UNRANKED
    names = ", ".join(map(str, ranks))
    return Text(f"rank {names}", f"rank {names}")
