"""Compares the processes of one run with those of another that has fewer, or another layout: stage by stage, to the
first place where they part."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from torchferry.accuracy.compare.batches import BatchDivision
from torchferry.accuracy.compare.gradients import GradientComparison, ProcessSteps
from torchferry.accuracy.compare.layouts import Array
from torchferry.accuracy.compare.lineup import AlignedCalls, PassCalls, ProcessCalls, lined_up, module_path
from torchferry.accuracy.compare.passes import Passes, parted, spot_of
from torchferry.accuracy.compare.stages import (
    LaidOut,
    Outcome,
    RankGroup,
    RanksComparison,
    StageResult,
    StepStage,
    first_parting,
)
from torchferry.accuracy.compare.updates import OptimizerStep, StepsOfOptimizer
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.judge.model import CallPair, Verdict
from torchferry.accuracy.model import Kept
from torchferry.errors import InputError
from torchferry.text import Text

Progress = Callable[[int, int], None]  # calls done, calls in all
_EVENLY = 5e-3  # by which the shares of samples of two ranks may differ
_UNEVEN_SIZES = Text(
    "the mean of the ranks' means is not the mean of all samples: the ranks have {sizes} samples, "
    "and each sample counts {shares} times its weight",
    "各 rank 平均值的平均不等于全部样本的平均：各 rank 的样本数为 {sizes}，"
    "其每个样本的权重分别为应有的 {shares} 倍",
)
_UNEVEN_COUNTS = Text(
    "each rank divides its loss by its own count (ignore_index, masks, class weights?): its samples "
    "count {shares} times as much as in one process",
    "每个 rank 用自己的计数去除损失（ignore_index、掩码、类别权重？）：其样本的权重分别为单进程时的 "
    "{shares} 倍",
)
_OTHER_LOSS = Text(
    "the losses of the ranks ({many}) have neither the mean nor the sum of the other side's ({few})",
    "各 rank 的损失（{many}）的平均与总和都不等于对方的损失（{few}）",
)
_WRONG_OPERATOR = Text(
    "{operator} itself computes wrong results on rank {rank} of {side}: {why}",
    "{operator} 本身在 {side} 的 rank {rank} 上计算错误：{why}",
)
_NO_STEP = Text("the two sides have no completely recorded step in common", "两份记录没有共同的完整步")
_LATER = Text(
    "in step {step}, only the batch and the optimizer's arguments were compared: the weights already "
    "differed",
    "第 {step} 步只比较了批次和优化器参数：权重在此之前已不同",
)
_LEFT_OUT = Text(
    "{path}: {count} calls of a step have no counterpart on the other side and were ignored",
    "{path}：一步中有 {count} 个调用在对方没有对应项，已略过",
)
_OTHER_CALLS = Text(
    "step {step}: the optimizers make different calls (one for all weights, or one for each?), so "
    "their arguments were not compared; the weights after them were",
    "第 {step} 步：两边的优化器调用不同（对全部权重一次调用，或逐个调用？），其参数未比较，"
    "但比较了更新后的权重",
)
_ACCUMULATED = Text(
    "{path}: step {step} accumulates the gradients of {count} passes, which are treated as one batch",
    "{path}：第 {step} 步累积了 {count} 次前向与反向的梯度，它们被视为一个批次",
)


def compare_ranks(
    mine: Sequence[Record],
    golden: Sequence[Record],
    names: tuple[str, str],
    progress: Progress | None = None,
) -> RanksComparison:
    """The processes of two runs; whichever has fewer is what the others are to make up."""
    for record in (*mine, *golden):
        if record.header.kept is not Kept.TENSORS:
            raise InputError(
                Text(
                    f"{record.path}: holds no tensor elements, which are needed to combine ranks; record it with "
                    "--tensors",
                    f"{record.path}：没有记录结果的元素，无法合并各 rank；请加 --tensors 重新记录",
                )
            )
    if len(golden) > len(mine):
        return _compared(golden, mine, names[::-1], progress)[0]
    found, is_divided = _compared(mine, golden, names, progress)
    if is_divided or len(mine) > len(golden):
        return found
    # those of golden may have a part of the batch each
    other, is_divided = _compared(golden, mine, names[::-1], progress)
    return other if is_divided else found


def _compared(
    many: Sequence[Record], few: Sequence[Record], paths: tuple[str, str], progress: Progress | None
) -> tuple[RanksComparison, bool]:
    """The comparison, and whether the batch of the few is divided among the many."""
    start = time.perf_counter()
    found = _RanksRun(many, few, paths, progress)
    stages = tuple(found.stages())
    is_divided = found.division is not None and found.division.problem is None
    comparison = RanksComparison(
        RankGroup(paths[0], tuple(each.header for each in many)),
        RankGroup(paths[1], tuple(each.header for each in few)),
        found.division.said if found.division is not None and is_divided else None,
        stages,
        first_parting(stages),
        tuple(found.layouts),
        tuple(found.notes),
        time.perf_counter() - start,
    )
    return comparison, is_divided


class _RanksRun:
    """All steps of two runs."""

    def __init__(
        self, many: Sequence[Record], few: Sequence[Record], paths: tuple[str, str], progress: Progress | None
    ) -> None:
        self._many, self._few, self._paths, self._progress = many, few, paths, progress
        self._calls = [[ProcessCalls(each, rank) for rank, each in enumerate(side)] for side in (many, few)]
        self._updates = [[StepsOfOptimizer(each).steps for each in side] for side in (many, few)]
        self.division: BatchDivision | None = None
        self.layouts: list[LaidOut] = []
        self.notes: list[Text] = []

    def stages(self) -> Iterator[StageResult]:
        """Of all steps that both have."""
        common = set.intersection(*(set(each.steps) for side in self._calls for each in side))
        if not common:
            self.notes.append(_NO_STEP)
        has_parted = False
        for step in sorted(common):
            found = list(self._of_step(step, is_first=step == min(common), has_parted=has_parted))
            yield from found
            has_parted = has_parted or any(each.outcome is not Outcome.FITS for each in found)

    def _of_step(self, step: int, *, is_first: bool, has_parted: bool) -> Iterator[StageResult]:
        many, few = ([one for each in side for one in each.passes(step)] for side in self._calls)
        self._note_passes(many, few, step)
        update = self._updates[1][0].get(step, OptimizerStep())
        weights = frozenset(each.content for each in update.before())
        records = [[each.record for each in side] for side in (many, few)]
        passes = Passes(
            records[0],
            records[1],
            step,
            [each.rank for each in many],
            weights,
            self._calls[1][0].origins,
            is_first,
        )
        groups = list(lined_up(many, few))
        self._note_left_out(groups, (many, few))
        passes.follow(groups, self._progress)
        loss = next(self._of_loss(passes, step), None)
        found = list(self._with_judgements(passes, parted(passes.stages, step)))
        if loss is not None:
            found = [each for each in found if each.stage is not StepStage.LOSS] + [loss]
        if has_parted:  # what follows from other weights is no news
            found = [each for each in found if each.stage is StepStage.BATCH]
            self.notes.append(_LATER.format(step=step))
        yield from sorted(found, key=lambda each: list(StepStage).index(each.stage))
        if is_first:
            self.division, self.layouts = passes.division, list(passes.laid_out())
        has_parted = has_parted or any(each.outcome is not Outcome.FITS for each in found)
        yield from self._of_update(step, passes, is_first=is_first, has_parted=has_parted)

    def _of_update(
        self, step: int, passes: Passes, *, is_first: bool, has_parted: bool
    ) -> Iterator[StageResult]:
        many, few = (
            ProcessSteps(records, [each.get(step, OptimizerStep()) for each in updates])
            for records, updates in zip((self._many, self._few), self._updates, strict=True)
        )
        gradients = GradientComparison(many, few, step, passes)
        groups = list(lined_up(*([each.optimizer(step) for each in side] for side in self._calls)))
        reduction = gradients.reduction(has_parted=has_parted or not is_first)
        optimizer = gradients.optimizer(groups)
        if optimizer is None and reduction is not None:
            self.notes.append(_OTHER_CALLS.format(step=step))
        found = [each for each in (reduction, optimizer) if each is not None]
        has_parted = has_parted or any(each.outcome is not Outcome.FITS for each in found)
        update = gradients.update(has_parted=has_parted)
        yield from found
        if update is not None:
            yield update
        if is_first:
            self.layouts += gradients.layouts.values()

    def _note_passes(self, many: Sequence[PassCalls], few: Sequence[PassCalls], step: int) -> None:
        for path, records, passes in zip(self._paths, (self._many, self._few), (many, few), strict=True):
            if len(passes) > len(records):
                self.notes.append(
                    _ACCUMULATED.format(path=path, count=len(passes) // len(records), step=step)
                )

    def _note_left_out(self, groups: Sequence[AlignedCalls], sides: Sequence[Sequence[PassCalls]]) -> None:
        matched = sum(bool(module_path(each.few[0])) for each in groups)
        for path, side in zip(self._paths, sides, strict=True):
            left = max(each.inside for each in side) - matched
            if left > matched // 4:
                self.notes.append(_LEFT_OUT.format(path=path, count=left))

    def _of_loss(self, passes: Passes, step: int) -> Iterator[StageResult]:
        """Whether the samples of all ranks count alike, and the losses are a mean or a sum."""
        shares, division = passes.shares, passes.division
        if shares is None or division is None or division.rows.of_ranks is None or passes.has_parted:
            return
        relative = shares * len(self._few) / len(self._many)
        if float(np.ptp(relative)) > _EVENLY * float(relative.mean()):
            sizes = [len(each) for each in division.rows.of_ranks]
            is_of_sizes = float(np.ptp(shares * sizes)) < _EVENLY * float((shares * sizes).mean())
            said = _UNEVEN_SIZES if is_of_sizes and len(set(sizes)) > 1 else _UNEVEN_COUNTS
            why = said.format(sizes=_listed(sizes), shares=", ".join(f"{each:.3g}" for each in relative))
            spot = spot_of(passes.loss.few[0]) if passes.loss is not None else None
            compared = passes.stages[StepStage.LOSS].compared
            yield StageResult(step, StepStage.LOSS, Outcome.PARTS, compared, why, None, spot)

    def _with_judgements(self, passes: Passes, results: Iterator[StageResult]) -> Iterator[StageResult]:
        """With what is known of the operator itself, where the runs part at one."""
        for result in results:
            is_culprit = passes.culprit is not None and result.stage in (
                StepStage.FORWARD,
                StepStage.BACKWARD,
            )
            why = self._wrong_operator(passes, result) if is_culprit else None
            yield replace(result, why=why) if why is not None else result

    def _wrong_operator(self, passes: Passes, result: StageResult) -> Text | None:
        """Whether the operator computes wrong from its own inputs, on a rank of either side."""
        group = passes.culprit
        if group is None:
            return None
        if result.outcome is not Outcome.PARTS or importlib.util.find_spec("torch") is None:
            return None
        if result.spot is None or result.spot.number != group.few[0].number:
            return None
        from torchferry.accuracy.judge.judging import Judge

        sides = zip(self._paths, (passes.many, passes.few), (group.many, group.few), strict=True)
        for path, records, calls in sides:
            for record, call in zip(records, calls, strict=True):
                judgement = Judge(record, None).judge(CallPair(call, None))
                if judgement.verdict in (Verdict.FAULT, Verdict.SUSPICIOUS):
                    why = judgement.why or Text(judgement.sort.value, judgement.sort.value)
                    return _WRONG_OPERATOR.format(
                        operator=call.operator, rank=record.header.rank, side=path, why=why
                    )
        return None


def _listed(numbers: Sequence[int] | Array) -> str:
    return ", ".join(map(str, numbers))
