"""Forward and backward pass of several processes against those of fewer: the first call whose results part. No torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from torchferry.accuracy.compare.batches import BatchDivision, divided
from torchferry.accuracy.compare.layouts import (
    Array,
    Fit,
    RankLayout,
    SampleRows,
    best_fit,
    root_mean_square,
    values_of,
)
from torchferry.accuracy.compare.lineup import BACKWARD, FORWARD, AlignedCalls, module_path
from torchferry.accuracy.compare.matching import is_scratch
from torchferry.accuracy.compare.reduction import share_of_samples
from torchferry.accuracy.compare.stages import LaidOut, Outcome, Spot, StageResult, StepStage
from torchferry.accuracy.compare.statistics import AMPLIFICATION, rounding
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.operators.names import family, is_random
from torchferry.report.commands import ferry_command
from torchferry.text import Text

_PARAMETER, _BUFFER = "parameter", "buffer"
_FIRST_CALLS = 16  # in the model, whose inputs are looked at for the samples of the batch
_CREEP = 1e-2  # the largest distance of inputs that is taken for what rounding has grown to
_PRODUCTS = ("matrix product", "convolution", "convolution backward")
_RELEASE = 1 << 27  # bytes of the files that are read before they are given back

_RANDOM = Text(
    "{operator} draws random numbers, which differ on each rank: compare runs without dropout (p=0), "
    "or judge each rank separately with `{command}`",
    "{operator} 使用随机数，各 rank 的随机数不同：请关闭 dropout（p=0）后再比较，或用 `{command}` "
    "单独判断各 rank",
)
_BATCH_NORM = Text(
    "BatchNorm is not synchronized: each rank uses the mean and variance of only its samples "
    "(torch.nn.SyncBatchNorm uses those of all ranks)",
    "BatchNorm 未同步：每个 rank 只用自己的样本计算均值和方差（torch.nn.SyncBatchNorm 使用全部 rank 的样本）",
)
_OWN = Text(
    "the inputs of {operator} equal those of the other side, its outputs do not",
    "{operator} 的输入与对方一致，输出却不同",
)
_OTHER_INPUT = Text(
    "{name} of {operator} differs on the ranks, although the earlier calls that both sides make "
    "agree: one side does something more in between",
    "各 rank 上 {operator} 的 {name} 与对方不同，而双方此前共有的调用结果一致：有一方在其间多做了运算",
)
_DIFFERENT_WEIGHTS = Text(
    "the ranks start with different weights from the other side: {tensor}",
    "各 rank 的初始权重与对方不同：{tensor}",
)
_DIFFERENT_INPUT = Text(
    "{tensor} does not match the samples of the rank: it is not the same part of the batch",
    "{tensor} 与该 rank 的样本不对应：不是批次的同一部分",
)


@dataclass(frozen=True)
class _Known:
    """What is known of a tensor of the few, by its content."""

    outcome: Outcome
    distance: float = 0.0


@dataclass
class StageFindings:
    """What was seen of a stage so far."""

    compared: int = 0
    first: StageResult | None = None  # where it parts
    follows: bool = False
    unknown: int = 0

    def result(self, step: int, stage: StepStage) -> StageResult | None:
        """What is to be said of it; None: there was nothing to compare."""
        if self.first is not None:
            return self.first
        if not self.compared and not self.follows and not self.unknown:
            return None
        outcome = Outcome.FOLLOWS if self.follows else Outcome.FITS if self.compared else Outcome.UNKNOWN
        return StageResult(step, stage, outcome, self.compared)


@dataclass
class Passes:
    """Follows both passes of a step, call by call."""

    many: Sequence[Record]
    few: Sequence[Record]
    step: int
    ranks: Sequence[int]  # of the many, each of which may be there several times, with other samples
    weights: frozenset[int] = frozenset()  # contents of parameters, also where the model has pieces of them
    origins: Mapping[int, int] = field(default_factory=dict)  # content -> what it is a copy or a cast of
    is_first: bool = True  # the first step: weights may differ afterwards where rounding was blown up
    precision: float = 0.0  # what rounding explains, in the dtype with the fewest digits so far
    division: BatchDivision | None = None
    shares: Array | None = None  # how often each rank's loss counts its samples, beside the other side's
    loss: AlignedCalls | None = None  # the last call outside of a backward pass that has made a scalar
    layouts: Counter[tuple[str, RankLayout]] = field(default_factory=Counter)
    examples: dict[tuple[str, RankLayout], str] = field(default_factory=dict)
    sizes: dict[int, float] = field(default_factory=dict)  # content -> the size that its terms have
    culprit: AlignedCalls | None = None

    def __post_init__(self) -> None:
        self.stages = {stage: StageFindings() for stage in StepStage}
        self._known: dict[int, _Known] = {}
        self._is_inside = False  # the model has been called
        self._read = 0

    @property
    def has_parted(self) -> bool:
        """Whether anything has parted already."""
        return any(each.first is not None for each in self.stages.values())

    def follow(
        self, groups: Sequence[AlignedCalls], progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Look at all calls, in their order; progress is told in bytes."""
        self._divide(groups)
        total, done = sum(map(_nbytes, groups)), 0
        for group in groups:
            self._is_inside = self._is_inside or bool(group.few[0].model)
            self._look(group)
            self._release(group)
            done += _nbytes(group)
            if progress is not None:
                progress(done, max(total, 1))

    def _release(self, group: AlignedCalls) -> None:
        self._read += _nbytes(group)
        if self._read > _RELEASE:
            for record in (*self.many, *self.few):
                record.release()
            self._read = 0

    def _look(self, group: AlignedCalls) -> None:
        call = group.few[0]
        stage = StepStage.BACKWARD if call.phase == BACKWARD else StepStage.FORWARD
        states = [self._input(group, each, stage) for each in call.inputs if each.offset is not None]
        given = max((each.distance for each in states if each.outcome is Outcome.FITS), default=0.0)
        outcomes = {each.outcome for each in states}
        for tensor in call.outputs:
            if tensor.offset is None or is_scratch(tensor):
                continue
            self._output(group, tensor, stage, outcomes, min(given, _CREEP))

    # Inputs: what an earlier call has made is known; what comes from outside is looked at here.

    def _input(self, group: AlignedCalls, tensor: TensorRecord, stage: StepStage) -> _Known:
        known = self._known.get(self.origins.get(tensor.content, tensor.content)) if tensor.content else None
        if known is None:
            known = self._source(group, tensor, stage)
            if tensor.content:
                self._known[tensor.content] = known
        return known

    def _source(self, group: AlignedCalls, tensor: TensorRecord, stage: StepStage) -> _Known:
        both = self._arrays(group, tensor)
        if both is None:
            return _Known(Outcome.UNKNOWN)
        role = _role_of(group, tensor)
        is_weight = role in (_PARAMETER, _BUFFER) or tensor.content in self.weights
        limit = max(rounding([tensor]), self.precision if _is_float(tensor) else 0.0)
        found = self._fit(*both, limit, stage)
        if found is not None and found.distance <= limit:
            self._count(role or "input", found.layout, group.few[0], tensor)
            if is_weight:
                self.stages[StepStage.PARAMETERS].compared += 1
            return _Known(Outcome.FITS, found.distance)
        if stage is not StepStage.FORWARD or not self._is_inside:  # data may be made ready in any way
            return _Known(Outcome.UNKNOWN)
        if is_weight and not self.is_first:
            return _Known(Outcome.FOLLOWS)  # of the step before, where its update was looked at
        if is_weight:
            said = _DIFFERENT_WEIGHTS.format(tensor=described(group.few[0], tensor))
            self._part(group, StepStage.PARAMETERS, tensor, found, limit, said)
        elif self.division is not None and self.division.problem is None and not _is_float(tensor):
            if found is not None and not self.has_parted:  # else it may be a piece of what has
                said = _DIFFERENT_INPUT.format(tensor=described(group.few[0], tensor))
                self._part(group, StepStage.BATCH, tensor, found, limit, said)
        return _Known(Outcome.PARTS if found is not None else Outcome.UNKNOWN)

    def _divide(self, groups: Sequence[AlignedCalls]) -> None:
        """Find the samples of each rank in what the model is given first."""
        whole: BatchDivision | None = None
        for both, is_float in self._first_inputs(groups):
            found = divided(*both, self.ranks)
            if found is None:
                continue
            whole = whole or found
            if found.problem is not None or found.rows.of_ranks is not None or is_float:
                whole = found
                break  # what is the same everywhere may be positions, and no samples
        if whole is not None:
            self._set_division(whole)

    def _first_inputs(
        self, groups: Sequence[AlignedCalls]
    ) -> Iterator[tuple[tuple[list[Array], list[Array]], bool]]:
        """What the first calls of the model are given, but its weights; and whether these are fractions."""
        for group in [each for each in groups if each.few[0].model][:_FIRST_CALLS]:
            for tensor in group.few[0].inputs:
                is_weight = bool(_role_of(group, tensor)) or tensor.content in self.weights
                both = None if is_weight else self._arrays(group, tensor)
                if both is not None:
                    yield both, _is_float(tensor)

    def _set_division(self, found: BatchDivision) -> None:
        self.division = found
        seen = self.stages[StepStage.BATCH]
        seen.compared += 1
        if found.problem is not None:
            seen.first = StageResult(self.step, StepStage.BATCH, Outcome.PARTS, 1, found.problem, found.rank)

    # Outputs.

    def _output(
        self, group: AlignedCalls, tensor: TensorRecord, stage: StepStage, inputs: set[Outcome], given: float
    ) -> None:
        both = self._arrays(group, tensor)
        if both is None:
            self._known[tensor.content] = _Known(Outcome.UNKNOWN)
            return
        call = group.few[0]
        if stage is StepStage.BACKWARD and self.shares is None:
            self._share(both)
        if _is_float(tensor):
            self.precision = max(self.precision, rounding([tensor]))
        limit = max(rounding([*call.inputs, tensor]), AMPLIFICATION * given)
        size = self._natural_size(call, tensor, both[1])
        if size:
            self.sizes[tensor.content] = size
        if stage is StepStage.FORWARD and tensor.shape == () and _is_float(tensor):
            stage = StepStage.LOSS
            self.loss = group
        found = self._fit(*both, limit, stage, size)
        if found is not None and found.distance <= limit:
            self.stages[stage].compared += 1
            role = "activation" if stage is not StepStage.BACKWARD else "gradient of a rank"
            self._count(role, found.layout, call, tensor)
            self._known[tensor.content] = _Known(Outcome.FITS, found.distance)
        else:
            self._known[tensor.content] = self._of_other_output(group, tensor, stage, inputs, found, limit)

    def _of_other_output(
        self,
        group: AlignedCalls,
        tensor: TensorRecord,
        stage: StepStage,
        inputs: set[Outcome],
        found: Fit | None,
        limit: float,
    ) -> _Known:
        """What is said of a result that does not fit: what went in may explain it."""
        seen = self.stages[stage]
        if inputs & {Outcome.PARTS, Outcome.FOLLOWS, Outcome.RANDOM}:
            seen.follows = True
            return _Known(Outcome.FOLLOWS)
        if found is None or Outcome.UNKNOWN in inputs or not _is_float(tensor):
            seen.unknown += 1
            return _Known(Outcome.UNKNOWN)
        if stage is StepStage.LOSS or tensor.shape == ():
            return _Known(Outcome.FITS)  # the gradients will tell
        outcome, said = self._reason(group, limit)
        self._part(group, stage, tensor, found, limit, said, outcome)
        return _Known(outcome)

    def _reason(self, group: AlignedCalls, limit: float) -> tuple[Outcome, Text]:
        """Why a call whose inputs are known to fit has another result."""
        call = group.few[0]
        if is_random(call.operator) or call.random is not None:
            return Outcome.RANDOM, _RANDOM.format(
                operator=call.operator, command=ferry_command("compare", self.many[0].path)
            )
        other = next((each for each in call.inputs if self._is_other(group, each, limit)), None)
        if other is not None:
            return Outcome.PARTS, _OTHER_INPUT.format(operator=call.operator, name=other.name)
        if family(call.operator) == "batch norm":
            return Outcome.PARTS, _BATCH_NORM
        if not self.has_parted:
            self.culprit = group
        return Outcome.PARTS, _OWN.format(operator=call.operator)

    def _is_other(self, group: AlignedCalls, tensor: TensorRecord, limit: float) -> bool:
        """Whether an input is another one on the ranks, although what has made it on the other side fits."""
        both = self._arrays(group, tensor)
        if both is None or not _is_float(tensor):
            return False
        found = self._fit(
            *both, limit, StepStage.BACKWARD if group.few[0].phase == BACKWARD else StepStage.FORWARD
        )
        return found is not None and found.distance > limit

    def _part(
        self,
        group: AlignedCalls,
        stage: StepStage,
        tensor: TensorRecord,
        found: Fit | None,
        limit: float,
        said: Text,
        outcome: Outcome = Outcome.PARTS,
    ) -> None:
        seen = self.stages[stage]
        if seen.first is None:
            apart = found.distance if found is not None else None
            rank = self.ranks[found.rank] if found is not None and found.rank is not None else None
            shown = f"{tensor.name} {shape_of(tensor)}"
            place = (rank, spot_of(group.few[0]), shown, apart, limit)
            seen.first = StageResult(self.step, stage, outcome, seen.compared, said, *place)

    # What both have in common.

    def _arrays(self, group: AlignedCalls, tensor: TensorRecord) -> tuple[list[Array], list[Array]] | None:
        """The tensor of every process; None: one has no contents."""
        many = _values(self.many, group.many, tensor.name)
        few = _values(self.few, group.few, tensor.name)
        return (many, few) if many and few else None

    def _fit(
        self, many: list[Array], few: list[Array], limit: float, stage: StepStage, size: float = 0.0
    ) -> Fit | None:
        rows = self.division.rows if self.division is not None else SampleRows()
        found = best_fit(many, few, rows, size, limit)
        if (
            stage is not StepStage.BACKWARD
            or self.shares is None
            or (found is not None and found.distance <= limit)
        ):
            return found
        shared = [each / share for each, share in zip(many, self.shares, strict=True)]
        other = best_fit(shared, few, rows, size, limit)
        return min(
            (each for each in (found, other) if each is not None),
            key=lambda each: each.distance,
            default=None,
        )

    def _share(self, both: tuple[list[Array], list[Array]]) -> None:
        """By what the loss of each rank counts its samples: the first gradient that has rows tells."""
        if self.division is None or self.division.rows.of_ranks is None:
            self.shares = np.ones(len(self.many))
            return
        self.shares = share_of_samples(*both, self.division.rows)

    def _natural_size(self, call: Call, tensor: TensorRecord, few: list[Array]) -> float:
        """The size of a sum whose terms have random signs: what rounding is relative to where terms cancel out."""
        if len(few) > 1 or call.phase == FORWARD:
            return 0.0
        terms = [
            (root_mean_square(each), each.size)
            for given in call.inputs
            if "float" in given.dtype
            and (each := values_of(self.few[0], given)) is not None
            and each.size > 1
        ]
        count = max(1, few[0].size)
        if family(call.operator) in _PRODUCTS and len(terms) >= 2:
            (one, ones), (other, others) = _factors(call, tensor, terms)
            return one * other * math.sqrt(math.sqrt(ones * others / count))
        if terms and terms[0][1] > count:
            return terms[0][0] * math.sqrt(terms[0][1] / count)
        return terms[0][0] if terms and call.phase == BACKWARD and "norm" in family(call.operator) else 0.0

    def _count(self, role: str, layout: RankLayout, call: Call, tensor: TensorRecord) -> None:
        if tensor.shape == ():
            return
        key = (role, layout)
        self.layouts[key] += 1
        self.examples.setdefault(key, described(call, tensor))

    def laid_out(self) -> tuple[LaidOut, ...]:
        """The layouts that were found, the most frequent first."""
        return tuple(
            LaidOut(role, layout, count, self.examples[role, layout])
            for (role, layout), count in self.layouts.most_common()
        )


def _factors(
    call: Call, tensor: TensorRecord, terms: list[tuple[float, int]]
) -> tuple[tuple[float, int], tuple[float, int]]:
    """Which inputs a product is made of: those of a bias are left out, and a convolution's derivatives have two each."""
    if len(terms) == 2:
        return terms[0], terms[1]
    if "backward" in call.operator:
        return terms[0], terms[2] if tensor.name.endswith("output_0") else terms[1]
    return terms[1], terms[2]


def _values(records: Sequence[Record], calls: Sequence[Call], name: str) -> list[Array]:
    """Of this tensor in the call of each process; empty where one has none."""
    found = []
    for record, call in zip(records, calls, strict=True):
        tensor = next((each for each in (*call.inputs, *call.outputs) if each.name == name), None)
        values = values_of(record, tensor) if tensor is not None else None
        if values is None:
            return []
        found.append(values)
    return found


def _role_of(group: AlignedCalls, tensor: TensorRecord) -> str:
    """What the tensor is to the model of any process: pieces of a distributed one have no role."""
    every = (each for call in (*group.few, *group.many) for each in call.inputs if each.name == tensor.name)
    return next((each.role for each in every if each.role), "")


def _is_float(tensor: TensorRecord) -> bool:
    return "float" in tensor.dtype


def shape_of(tensor: TensorRecord) -> str:
    """Dtype and shape, as float32[8,64]."""
    return f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]"


def described(call: Call, tensor: TensorRecord) -> str:
    """A tensor by its module, name and shape."""
    return " ".join(filter(None, (module_path(call), tensor.name, shape_of(tensor))))


def spot_of(call: Call) -> Spot:
    """Where a call is made."""
    return Spot(call.number, call.operator, call.phase, module_path(call) or call.model, call.place)


def parted(findings: dict[StepStage, StageFindings], step: int) -> Iterator[StageResult]:
    """The results of all stages that there is anything to say of."""
    for stage, seen in findings.items():
        result = seen.result(step, stage)
        if result is not None:
            yield result


def _nbytes(group: AlignedCalls) -> int:
    return sum(each.nbytes for call in (*group.many, *group.few) for each in (*call.inputs, *call.outputs))
