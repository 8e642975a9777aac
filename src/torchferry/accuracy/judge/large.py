"""Judges calls with large tensors part by part, so that memory does not depend on their size.

All parts are held against golden, where it had the same inputs, or else against what the CPU computes in the call's
own precision; those that are farthest off, and some spread evenly, are then judged in double precision.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from torchferry.accuracy.judge import pieces
from torchferry.accuracy.judge.clearing import FLOAT64, clear, is_held_against_single
from torchferry.accuracy.judge.divisions import Division, by_element, divisions_of
from torchferry.accuracy.judge.execution import TensorSource, execute, read_inputs
from torchferry.accuracy.judge.margins import (
    UNIT,
    Compared,
    Terms,
    compare,
    digits_of,
    margins_of,
    views,
    work_of,
)
from torchferry.accuracy.judge.model import CannotExecuteError, ErrorKind, Judgement, Verdict
from torchferry.accuracy.judge.pieces import CallPart, Grid, Item, Ranges, items_of
from torchferry.accuracy.judge.references import Reference, attempt, results_if_any
from torchferry.accuracy.judge.sharing import PartSharing
from torchferry.accuracy.judge.sorting import Context, describe_region, sort_of
from torchferry.accuracy.model import Call, Slices, TensorRecord
from torchferry.operators.names import without_overload
from torchferry.text import Text

# Results that depend on all elements of tensors which are too large to be computed with as a whole: sums, norms, losses,
# largest elements. They are added up block by block, in double precision.

_MEAN, _SUM = 1, 2  # values of `reduction`
SAID = Text("{output}: {what}", "{output}：{what}")
_NOT_THE = Text("{mine:.9g} instead of {right:.9g}", "结果为 {mine:.9g}，应为 {right:.9g}")
_FLAG = Text(
    "the flag for infinite or NaN gradients is {mine:g} instead of {right:g}",
    "梯度中是否有无穷或 NaN 的标志为 {mine:g}，应为 {right:g}",
)
Blocks = Sequence[torch.Tensor]  # of each input, in double precision
# Of a block: what it adds to the total, and to the square of how far the total moves when every element is off a little.
Added = Callable[[Blocks], tuple[float, float]]


def _of_sum(block: Blocks) -> tuple[float, float]:
    return float(block[0].sum()), float(block[0].square().sum())


def _of_squares(block: Blocks) -> tuple[float, float]:
    squares = block[0].square()
    return float(squares.sum()), 4.0 * float(squares.square().sum())


def _of_squared_differences(block: Blocks) -> tuple[float, float]:
    away = (block[0] - block[1]).square()
    sizes = block[0].square() + block[1].square()
    return float(away.sum()), 4.0 * float((away * sizes).sum())


_ADDED: dict[str, Added] = {
    "aten::sum": _of_sum,
    "aten::mean": _of_sum,
    "aten::linalg_vector_norm": _of_squares,
    "aten::norm": _of_squares,
    "aten::mse_loss": _of_squared_differences,
}
_EXACT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "aten::max": torch.amax,
    "aten::min": torch.amin,
    "aten::amax": torch.amax,
    "aten::amin": torch.amin,
    "aten::any": torch.any,
    "aten::all": torch.all,
    "aten::count_nonzero": torch.count_nonzero,
}
_TOGETHER = {"aten::count_nonzero": torch.sum}  # how the results of blocks become one, where not by the same


def judge_total(task: LargeCall) -> Judgement | None:
    """Judge a call that makes one number of a large tensor; None: it is no such call."""
    mine = task.mine
    name = without_overload(mine.operator)
    inputs = [each for each in mine.inputs if each.shape]
    is_one = len(mine.outputs) == 1 and math.prod(mine.outputs[0].shape) == 1
    is_kept = all(each.offset is not None for each in (*inputs, *mine.outputs))
    if not is_one or not is_kept or not inputs or len({each.shape for each in inputs}) != 1:
        return None
    if name in _EXACT and len(inputs) == 1:
        return _judge_exact(mine, task.source, task.normal)
    # over all elements, and by squares where it is a norm
    given, is_loss = dict(mine.arguments), name.endswith("_loss")
    is_plain = given.get("ord", given.get("p", 2)) == 2
    is_reduced = not is_loss or given.get("reduction", _MEAN) in (_MEAN, _SUM)
    if name in _ADDED and len(inputs) == (2 if is_loss else 1) and is_plain and is_reduced:
        return _judge_sum(task, inputs)
    return None


def judge_flag(mine: Call, source: TensorSource, normal: Verdict) -> Judgement | None:
    """Judge the one result of a gradient scaler that depends on all gradients; None: the call has none."""
    record = next((each for each in mine.outputs if each.name == "output/found_inf"), None)
    before = next((each for each in mine.inputs if each.name == "input/found_inf"), None)
    if record is None or before is None or record.offset is None or before.offset is None:
        return None
    gradients = [each for each in mine.inputs if each.name.startswith("input/self")]
    if any(each.offset is None and each.elements for each in gradients):
        return None
    is_any = any(
        not bool(source.part(each, where).isfinite().all())
        for each in gradients
        for where in _blocks(each.shape)
    )
    right = 1.0 if is_any else float(source.tensor(before))
    found = float(source.tensor(record))
    if found == right:
        return Judgement(normal, output=record.name, own_error=0.0, basis=FLOAT64)
    why = SAID.format(output=record.name, what=_FLAG.format(mine=found, right=right))
    return Judgement(Verdict.FAULT, ErrorKind.VALUES, record.name, basis=FLOAT64, why=why)


def _blocks(shape: tuple[int, ...]) -> Iterator[Slices]:
    place, inner = len(shape), 1
    while place > 0 and inner * shape[place - 1] <= pieces.BLOCK:
        place -= 1
        inner *= shape[place]
    if place == 0:
        yield tuple(slice(0, size) for size in shape)
        return
    step = max(1, pieces.BLOCK // inner)
    size = shape[place - 1]
    rest = tuple(slice(0, each) for each in shape[place:])
    for outer in itertools.product(*(range(each) for each in shape[: place - 1])):
        for start in range(0, size, step):
            where = slice(start, min(start + step, size))
            yield (*(slice(at, at + 1) for at in outer), where, *rest)


def _judge_sum(task: LargeCall, inputs: Sequence[TensorRecord]) -> Judgement:
    mine, source = task.mine, task.source
    name, record = without_overload(mine.operator), mine.outputs[0]
    total, moved = _added_up(name, inputs, task)
    count = math.prod(inputs[0].shape)
    is_loss = name.endswith("_loss")
    if name == "aten::mean" or (is_loss and dict(mine.arguments).get("reduction", _MEAN) == _MEAN):
        total, moved = total / count, moved / count
    elif _ADDED[name] is _of_squares:
        total, moved = math.sqrt(total), moved / (2.0 * math.sqrt(total)) if total else 0.0
    digits = [found.digits for each in inputs if (found := digits_of(each.dtype)) is not None]
    terms = Terms(count, True, input_digits=min(digits, default=24))
    margins = margins_of(mine.operator)
    right = torch.tensor(total, dtype=torch.float64).reshape(record.shape)
    off = torch.tensor(moved * UNIT, dtype=torch.float64).reshape(record.shape)

    def held(result: torch.Tensor) -> Compared:
        return compare(result, right, off, record.dtype, margins, terms)

    compared = held(source.tensor(record))
    errors = compared.errors
    if errors.worst > 1.0:
        golden = None  # what golden has made of the same inputs
        if task.is_same_job and task.golden and task.golden_source and task.golden.outputs:
            first = task.golden.outputs[0]
            golden = task.golden_source.tensor(first) if first.offset is not None else None
        others = [held(each).errors for each in (golden, _of_host(mine, source)) if each is not None]
        errors = errors.excused_by(others, margins.margin)
    own = compared.errors.relative
    if errors.worst <= 1.0:
        return Judgement(task.normal, output=record.name, own_error=own, basis=FLOAT64)
    sort, what = sort_of(compared, Context(record.shape))
    verdict = Verdict.FAULT if errors.worst > views().fault else Verdict.SUSPICIOUS
    why = SAID.format(output=record.name, what=what)
    return Judgement(verdict, sort, record.name, own, None, own / errors.worst, FLOAT64, why)


def _added_up(name: str, inputs: Sequence[TensorRecord], task: LargeCall) -> tuple[float, float]:
    def added(where: Slices) -> tuple[float, float]:
        found = _ADDED[name]([task.source.part(each, where).double() for each in inputs])
        task.source.release()
        return found

    totals, squares = zip(*task.sharing.map(added, list(_blocks(inputs[0].shape))), strict=True)
    return math.fsum(totals), math.sqrt(math.fsum(squares))


def _of_host(call: Call, source: TensorSource) -> torch.Tensor | None:
    if sum(each.nbytes for each in call.inputs) > pieces.MOST_BYTES:
        return None
    return results_if_any(call, lambda: execute(call, read_inputs(source, call), "cpu"))[0]


def _judge_exact(mine: Call, source: TensorSource, normal: Verdict) -> Judgement:
    name, record = without_overload(mine.operator), mine.outputs[0]
    given = next(each for each in mine.inputs if each.shape)
    of_blocks = []
    for where in _blocks(given.shape):
        of_blocks.append(_EXACT[name](source.part(given, where)))
        source.release()
    right = _TOGETHER.get(name, _EXACT[name])(torch.stack(of_blocks))
    found = source.tensor(record).reshape(())
    if bool(found == right) or (bool(found != found) and bool(right != right)):
        return Judgement(normal, output=record.name, own_error=0.0, basis=FLOAT64)
    what = _NOT_THE.format(mine=float(found), right=float(right))
    why = SAID.format(output=record.name, what=what)
    return Judgement(Verdict.FAULT, ErrorKind.VALUES, record.name, basis=FLOAT64, why=why)


_HELD_BYTES = 1 << 26  # that are read before the files' memory is given back
_MUCH = (
    1 << 30
)  # products of numbers that are too many to be made anew in double precision, and so a few times
_IN_VAIN = 4  # parts that were not cleared, after which no others are tried
_FARTHEST, _SPREAD = 4, 5  # parts that are judged: of each view on the distance, and evenly spread
_OFTEN = 32.0  # times that the same elements may be read, for all parts to be looked at
_ORDER = list(Verdict)
_BAD = (Verdict.SUSPICIOUS, Verdict.FAULT)
# These may be those of a part alone.
_OF_PLACES = (
    ErrorKind.POINTS, ErrorKind.VALUES, ErrorKind.TAIL, ErrorKind.CHANNEL, ErrorKind.TILE, ErrorKind.STRIPE,
)  # fmt: skip
_FLOOR = 1e-3  # of the root mean square: what smaller elements are held against

_SAMPLED = Text(
    "large: {judged} of {count} parts were judged, those farthest from the expectation and some "
    "spread evenly",
    "张量较大：{count} 部分中判定了 {judged} 部分（偏差最大的及均匀抽取的）",
)
_SPREAD_ONLY = Text(
    "large: {judged} of {count} parts, spread evenly, were judged; the others were not checked",
    "张量较大：{count} 部分中均匀抽取 {judged} 部分进行判定；其余未检查",
)
_NOT_JUDGED = Text("{outputs}: too large to be judged", "{outputs}：过大，未判定")
TOO_LARGE = Text(
    "too large to be recomputed, and it can't be computed in parts", "张量过大，且无法分块重新计算"
)
_BOTH = Text("{one}; {other}", "{one}；{other}")
_IN_PART = Text("in part {part} of its result: {what}", "结果的 {part} 部分：{what}")
_VALUES = Text("{wrong} of {count} elements are wrong", "{count} 个元素中有 {wrong} 个错误")

Judge = Callable[[TensorSource, TensorSource | None, Call, Call | None], Judgement]


class HeldMemory:
    """The system counts what was read of mapped files as memory of this process: now and then, it is given back. Any
    number of threads may read."""

    def __init__(self) -> None:
        self._nbytes, self._lock = 0, threading.Lock()

    def add(self, call: Call, *sources: TensorSource | None) -> None:
        """The tensors of a call have been read."""
        with self._lock:
            self._nbytes += sum(each.nbytes for each in (*call.inputs, *call.outputs))
            if self._nbytes < _HELD_BYTES:
                return
            self._nbytes = 0
        for source in sources:
            if source is not None:
                source.release()


@dataclass(frozen=True)
class LargeCall:
    """A call, and golden's where it has the same shapes."""

    mine: Call
    source: TensorSource
    golden: Call | None
    golden_source: TensorSource | None
    is_same_job: bool  # golden's has the same inputs
    normal: Verdict  # what is said of it if nothing is wrong
    is_thorough: bool = False  # all parts in double precision
    held: HeldMemory = field(default_factory=HeldMemory)
    sharing: PartSharing = field(default_factory=PartSharing)

    def part(self, division: Division, ranges: Ranges) -> tuple[CallPart, CallPart | None]:
        """The same part of the call and of golden's."""
        mine = CallPart(self.mine, self.source, division, ranges)
        if self.golden is None or self.golden_source is None:
            return mine, None
        return mine, CallPart(self.golden, self.golden_source, division, ranges)


@dataclass(frozen=True)
class _Cell:
    """A part, and how far off it is: at most, against the size of the result; and against that of the elements."""

    ranges: Ranges
    distances: tuple[float, float] = (0.0, 0.0)

    def is_nearer(self, other: _Cell) -> bool:
        return all(mine <= its for mine, its in zip(self.distances, other.distances, strict=True))


def judge_large(task: LargeCall, judge: Judge) -> Judgement:
    """Judge a large call in parts; `judge` judges each as a whole."""
    count = items_of(task.mine)
    flag = judge_flag(task.mine, task.source, task.normal)
    if count > 1 or (count and flag is not None):
        items = task.sharing.map(lambda number: _judge_item(task, number, count, judge), range(count))
        return max([*items, *([flag] if flag is not None else [])], key=badness)
    divisions = divisions_of(task.mine)
    if not divisions and pieces.fits_as_a_whole(task.mine):
        return judge(task.source, task.golden_source, task.mine, task.golden)
    if not divisions:
        return judge_total(task) or Judgement(Verdict.UNKNOWN, why=TOO_LARGE)
    found = max((_Divided(task, division, judge).judgement() for division in divisions), key=badness)
    known = frozenset().union(*(division.outputs for division in divisions))
    left = [
        record.name
        for at, record in enumerate(task.mine.outputs)
        if at not in known and record.offset is not None and record.elements
    ]
    if not left:
        return found
    if found.verdict not in _BAD:
        found = replace(found, verdict=Verdict.UNKNOWN)
    return _with_note(found, _NOT_JUDGED.format(outputs=", ".join(left)))


def parts_by_element(call: Call, source: TensorSource) -> Iterator[CallPart]:
    """All parts of a large call whose elements do not depend on each other, each with its call; raises
    `CannotExecuteError` where there are none."""
    division = by_element(call)
    if division is None:
        raise CannotExecuteError(TOO_LARGE.en)
    for ranges in Grid(call, division).blocks:
        yield CallPart(call, source, division, ranges)
        source.release()


def _judge_item(task: LargeCall, number: int, count: int, judge: Judge) -> Judgement:
    mine = Item(task.mine, task.source, number, count)
    golden = None
    if task.golden is not None and task.golden_source is not None and items_of(task.golden) == count:
        golden = Item(task.golden, task.golden_source, number, count)
    other = golden.call if golden else None
    if not pieces.is_large(mine.call):
        task.held.add(mine.call, task.source, task.golden_source)
        return judge(mine, golden, mine.call, other)
    item = replace(task, mine=mine.call, source=mine, golden=other, golden_source=golden)
    return judge_large(item, judge)


class _Divided:
    """The judgement of one way to divide a call."""

    def __init__(self, task: LargeCall, division: Division, judge: Judge) -> None:
        self._task, self._division, self._judge = task, division, judge
        self._grid = Grid(task.mine, division)

    def judgement(self) -> Judgement:
        """What all parts are, if all can be looked at; otherwise the worst of some, and where it is wrong, of more."""
        cleared, left = self._cleared()
        if not left:
            assert cleared is not None
            return cleared
        if self._task.is_thorough or len(left) <= _IN_VAIN or not self._is_slow:
            cells = [_Cell(ranges) for block in left for ranges in self._grid.cells(block)]
            return self._worst(cells, cleared, is_all=True, was_looked_at=False)
        cells, was_looked_at = self._cells()
        return self._worst(cells, None, is_all=False, was_looked_at=was_looked_at)

    @property
    def _is_slow(self) -> bool:
        """Whether all of it in double precision would take long."""
        mine = self._task.mine
        is_much = is_held_against_single(mine) and work_of(mine, margins_of(mine.operator)) > _MUCH
        return is_much or self._grid.times_read > _OFTEN

    def _cleared(self) -> tuple[Judgement | None, list[Ranges]]:
        """Of the parts that are right without a doubt, the judgement of that which errs most; and the other parts."""
        worst: Judgement | None = None
        left: list[Ranges] = []
        blocks = self._grid.blocks
        if margins_of(
            self._task.mine.operator
        ).inner:  # whole layers hold more on the way than what they are given
            blocks = [cell for block in blocks for cell in self._grid.cells(block)]
        if self._task.is_thorough:
            return None, list(blocks)
        for at, found in enumerate(self._task.sharing.map(self._clear, blocks)):
            if found is None:
                left.append(blocks[at])
            elif worst is None or badness(found) > badness(worst):
                worst = replace(found, verdict=self._task.normal)
            if len(left) > _IN_VAIN:  # where many are not cleared, the rest would be in vain
                return worst, [*left, *blocks[at + 1 :]]
        return worst, left

    def _clear(self, block: Ranges) -> Judgement | None:
        part = CallPart(self._task.mine, self._task.source, self._division, block)
        found = clear(part.call, part)
        self._release(part)
        return found

    def _worst(
        self, cells: list[_Cell], cleared: Judgement | None, *, is_all: bool, was_looked_at: bool
    ) -> Judgement:
        chosen = cells if is_all else _chosen(cells, was_looked_at)
        is_all = len(chosen) == len(cells)
        judged = list(zip(chosen, self._task.sharing.map(self._judge_cell, chosen), strict=True))
        worst_cell, worst = max(judged, key=lambda each: badness(each[1]))
        if worst.verdict in _BAD:
            right = [cell for cell, each in judged if each.verdict not in _BAD]
            wrong = [cell for cell, each in judged if each.verdict in _BAD]
            suspects = wrong
            if not is_all:
                suspects = [each for each in cells if not any(each.is_nearer(one) for one in right)]
            return self._described(worst, worst_cell, suspects if is_all or was_looked_at else [])
        note = _SAMPLED if was_looked_at else _SPREAD_ONLY
        if cleared is not None:
            worst = max(worst, cleared, key=badness)
        return worst if is_all else _with_note(worst, note.format(judged=len(chosen), count=len(cells)))

    def _judge_cell(self, cell: _Cell) -> Judgement:
        mine, golden = self._task.part(self._division, cell.ranges)
        found = self._judge(mine, golden, mine.call, golden.call if golden else None)
        self._release(mine)
        return found

    def _release(self, part: CallPart) -> None:
        self._task.held.add(part.call, self._task.source, self._task.golden_source)

    def _cells(self) -> tuple[list[_Cell], bool]:
        blocks = self._grid.blocks
        has_golden = self._task.is_same_job and self._task.golden is not None
        plain = [_Cell(ranges) for block in blocks for ranges in self._grid.cells(block)]
        if len(plain) <= 2 * _FARTHEST + _SPREAD or (not has_golden and self._grid.times_read > _OFTEN):
            return plain, False
        try:
            measured = self._task.sharing.map(lambda block: list(self._measured(block, has_golden)), blocks)
            return list(itertools.chain.from_iterable(measured)), True
        except CannotExecuteError:
            return plain, False

    def _measured(self, block: Ranges, has_golden: bool) -> Iterator[_Cell]:
        mine, golden = self._task.part(self._division, block)
        if has_golden and golden is not None:
            expected = [
                golden.tensor(golden.call.outputs[at]) if at in self._division.outputs else None
                for at in range(len(mine.call.outputs))
            ]
        else:
            expected = attempt(lambda: execute(mine.call, read_inputs(mine, mine.call), "cpu"))
        apart = {}
        for at in self._division.outputs:
            right = expected[at]
            record = mine.call.outputs[at]
            if right is not None and record.offset is not None and tuple(right.shape) == record.shape:
                apart[at] = _distances(mine.tensor(record), right)
        starts = [start for start, _ in block]
        for ranges in self._grid.cells(block):
            inside = tuple(
                (start - begin, stop - begin) for (start, stop), begin in zip(ranges, starts, strict=True)
            )
            yield _Cell(ranges, self._farthest(inside, apart))
        self._release(mine)

    def _farthest(
        self, ranges: Ranges, apart: dict[int, tuple[torch.Tensor, torch.Tensor]]
    ) -> tuple[float, float]:
        found = [0.0, 0.0]
        for output, both in apart.items():
            where = [slice(None)] * both[0].dim()
            for axis, (start, stop) in zip(self._division.axes, ranges, strict=True):
                if output in axis.outputs:
                    where[axis.outputs[output]] = slice(start, stop)
            for view, distances in enumerate(both):
                part = distances[tuple(where)]
                found[view] = max(found[view], float(part.max()) if part.numel() else 0.0)
        return found[0], found[1]

    def _described(self, worst: Judgement, cell: _Cell, suspects: list[_Cell]) -> Judgement:
        """Where the wrong elements of the whole result lie; where that can't be found out, those of one part."""
        number = next(at for at, each in enumerate(self._task.mine.outputs) if each.name == worst.output)
        part = self._task.part(self._division, cell.ranges)[0]
        place = ", ".join(f"{each.start}:{each.stop}" for each in part.place(number))
        in_part = replace(worst, why=_IN_PART.format(part=f"[{place}]", what=worst.why or ""))
        is_too_much = not suspects or len(suspects) * pieces.PIECE > _OFTEN * pieces.WHOLE
        shape = self._task.mine.outputs[number].shape
        has_no_place = worst.sort in (ErrorKind.NAN, ErrorKind.INFINITE, ErrorKind.SHAPE)
        if has_no_place or is_too_much or math.prod(shape) > pieces.WHOLE:
            return in_part
        wrong = torch.zeros(shape, dtype=torch.bool)
        are_zero = True
        for each in suspects:
            part = self._task.part(self._division, each.ranges)[0]
            found = _wrong_elements(part, number)
            if found is None:
                return in_part
            wrong[part.place(number)] = found[0]
            are_zero = are_zero and found[1]
            self._release(part)
        return _of_whole(worst, wrong, are_zero)


def _of_whole(worst: Judgement, wrong: torch.Tensor, are_zero: bool) -> Judgement:
    found = describe_region(wrong, are_zero=are_zero)
    count, number = wrong.numel(), int(wrong.sum())
    is_few = 0 < number * 100 < count
    if found is None and (is_few or worst.sort in _OF_PLACES):
        found = ErrorKind.POINTS if is_few else ErrorKind.VALUES, _VALUES.format(wrong=number, count=count)
    if found is None:
        return worst
    return replace(worst, sort=found[0], why=SAID.format(output=worst.output, what=found[1]))


def _wrong_elements(part: CallPart, number: int) -> tuple[torch.Tensor, bool] | None:
    """Which elements of a result are wrong, and whether all of those are zero."""
    record = part.call.outputs[number]
    try:
        reference = Reference(part.call, part)
        result = part.tensor(record)
        compared = reference.compare(number, result, closely=True)
    except CannotExecuteError:
        return None
    wrong = compared.wrong
    if wrong.numel() != result.numel():  # complex numbers have two parts
        wrong = wrong.reshape(-1, 2).any(1)
    wrong = wrong.reshape(record.shape)
    return wrong, not bool(result[wrong].any())


def _distances(mine: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each element: against the size of the result, and against its own."""
    if mine.is_complex():
        mine, right = mine.abs(), right.abs()
    if not mine.is_floating_point():
        differs = (mine != right).float()
        return differs, differs
    mine, right = mine.float(), right.float()
    away = (mine - right).abs_()
    is_finite = away.isfinite()
    away = torch.where(is_finite | (mine == right) | (mine.isnan() & right.isnan()), away, math.inf)
    away = away.nan_to_num_(0.0, math.inf)
    size = right.abs().nan_to_num_(0.0, 0.0, 0.0)
    typical = float(size.square().mean().sqrt()) or 1.0
    return away / typical, away / size.add_(_FLOOR * typical)


def _chosen(cells: list[_Cell], was_looked_at: bool) -> list[_Cell]:
    """Those that are farthest off, in each view; the first, the last, and some between."""
    if len(cells) <= 2 * _FARTHEST + _SPREAD:
        return cells
    count = _SPREAD if was_looked_at else 2 * _FARTHEST + _SPREAD
    chosen = {round(at * (len(cells) - 1) / (count - 1)) for at in range(count)}
    for view in (0, 1) if was_looked_at else ():
        order = sorted(range(len(cells)), key=lambda at: -cells[at].distances[view])
        chosen.update(order[:_FARTHEST])
    return [cells[at] for at in sorted(chosen)]


def _with_note(judgement: Judgement, note: Text) -> Judgement:
    why = note if judgement.why is None else _BOTH.format(one=judgement.why, other=note)
    return replace(judgement, why=why)


def badness(judgement: Judgement) -> tuple[int, float]:
    """Greater for what is worse: by verdict, then by error."""
    return _ORDER.index(judgement.verdict), judgement.own_error or 0.0
