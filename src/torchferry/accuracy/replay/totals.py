"""Judges results that depend on all elements of tensors which are too large to be computed with as a whole: sums, norms,
losses, largest elements. They are added up block by block, in double precision."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import torch

from torchferry.accuracy.compare.model import Judgement, Sort, Verdict
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.accuracy.replay import pieces
from torchferry.accuracy.replay.arguments import CannotExecuteError
from torchferry.accuracy.replay.errors import Compared, Terms, compare
from torchferry.accuracy.replay.execution import Source, execute, read_inputs
from torchferry.accuracy.replay.margins import digits_of, margins_of, views
from torchferry.accuracy.replay.operators import base_name
from torchferry.accuracy.replay.references import attempt
from torchferry.accuracy.replay.sensitivity import UNIT
from torchferry.accuracy.replay.sorting import Context, sort_of
from torchferry.text import Text

FLOAT64 = "float64"
_MEAN, _SUM = 1, 2  # values of `reduction`
_SAID = Text("{output}: {what}", "{output}：{what}")
_NOT_THE = Text("it is {mine:.9g}, not {right:.9g}", "结果为 {mine:.9g}，应为 {right:.9g}")
_FLAG = Text(
    "whether a gradient is infinite or NaN is told as {mine:g}, not {right:g}",
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


def judge_total(mine: Call, source: Source, golden: torch.Tensor | None, normal: Verdict) -> Judgement | None:
    """Of a call that makes one number of a large tensor; None: it is no such call. `golden` is what golden has made of
    the same inputs."""
    name = base_name(mine.operator)
    inputs = [each for each in mine.inputs if each.shape]
    is_one = len(mine.outputs) == 1 and math.prod(mine.outputs[0].shape) == 1
    is_kept = all(each.offset is not None for each in (*inputs, *mine.outputs))
    if not is_one or not is_kept or not inputs or len({each.shape for each in inputs}) != 1:
        return None
    if name in _EXACT and len(inputs) == 1:
        return _judge_exact(mine, source, normal)
    if name in _ADDED and len(inputs) == (2 if name.endswith("_loss") else 1) and _is_plain(mine, name):
        return _judge_sum(mine, source, golden, normal)
    return None


def judge_flag(mine: Call, source: Source, normal: Verdict) -> Judgement | None:
    """Of the one result of a gradient scaler that depends on all gradients; None: the call has none."""
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
    why = _SAID.format(output=record.name, what=_FLAG.format(mine=found, right=right))
    return Judgement(Verdict.FAULT, Sort.VALUES, record.name, basis=FLOAT64, why=why)


def _is_plain(call: Call, name: str) -> bool:
    """Over all elements, and by squares where it is a norm."""
    given = dict(call.arguments)
    order = given.get("ord", given.get("p", 2))
    return order == 2 and (not name.endswith("_loss") or given.get("reduction", _MEAN) in (_MEAN, _SUM))


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """All of a tensor, in parts of a size that fits into memory."""
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


def _judge_sum(mine: Call, source: Source, golden: torch.Tensor | None, normal: Verdict) -> Judgement:
    name, record = base_name(mine.operator), mine.outputs[0]
    inputs = [each for each in mine.inputs if each.shape]
    total, moved = _added_up(name, inputs, source)
    count = math.prod(inputs[0].shape)
    is_mean = name == "aten::mean" or (
        name.endswith("_loss") and dict(mine.arguments).get("reduction", _MEAN) == _MEAN
    )
    if is_mean:
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
        others = [held(each).errors for each in (golden, _of_host(mine, source)) if each is not None]
        errors = errors.excused_by(others, margins.margin)
    own = compared.errors.relative
    if errors.worst <= 1.0:
        return Judgement(normal, output=record.name, own_error=own, basis=FLOAT64)
    sort, what = sort_of(compared, Context(record.shape))
    verdict = Verdict.FAULT if errors.worst > views().fault else Verdict.SUSPICIOUS
    why = _SAID.format(output=record.name, what=what)
    return Judgement(verdict, sort, record.name, own, None, own / errors.worst, FLOAT64, why)


def _added_up(name: str, inputs: Sequence[TensorRecord], source: Source) -> tuple[float, float]:
    """The total of all blocks, and how far it moves."""
    totals, squares = [], []
    for where in _blocks(inputs[0].shape):
        total, square = _ADDED[name]([source.part(each, where).double() for each in inputs])
        totals.append(total)
        squares.append(square)
        source.release()
    return math.fsum(totals), math.sqrt(math.fsum(squares))


def _of_host(call: Call, source: Source) -> torch.Tensor | None:
    """What the CPU's own kernel makes of it, unless that would fill the memory."""
    if sum(each.nbytes for each in call.inputs) > pieces.MOST_BYTES:
        return None
    try:
        return attempt(lambda: execute(call, read_inputs(source, call), "cpu"))[0]
    except CannotExecuteError:
        return None


def _judge_exact(mine: Call, source: Source, normal: Verdict) -> Judgement:
    name, record = base_name(mine.operator), mine.outputs[0]
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
    why = _SAID.format(output=record.name, what=what)
    return Judgement(Verdict.FAULT, Sort.VALUES, record.name, basis=FLOAT64, why=why)
