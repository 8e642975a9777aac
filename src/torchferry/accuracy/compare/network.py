"""What a whole network answers on both sides: its output and loss, how loss and gradients go over the
steps; and what a reader should know besides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from torchferry.accuracy.compare import statistics as watched_rows
from torchferry.accuracy.compare.matching import NOTHING
from torchferry.accuracy.compare.model import NetworkCurve, NetworkDifference, PairRows
from torchferry.accuracy.judge.model import CallPair
from torchferry.accuracy.model import Call, Kept, RecordHeader, Statistics, TensorRecord
from torchferry.operators.names import base_name, is_plumbing
from torchferry.report.safe import one_line
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

_HOW = Text("how calls were judged: {parts}", "各调用的判定方式：{parts}")
_JUDGED_BY = {
    "equal": Text("{count} equal to golden bit for bit", "{count} 个与标杆逐位一致"),
    "golden": Text("{count} against golden", "{count} 个与标杆比较"),
    "bits": Text("{count} equal to the CPU's kernel bit for bit", "{count} 个与 CPU kernel 逐位一致"),
    "float32": Text("{count} against single precision", "{count} 个与单精度比较"),
    "float64": Text("{count} against double precision", "{count} 个与双精度比较"),
    "distribution": Text("{count} by their distribution", "{count} 个按分布判定"),
}
NORMAL = 1e-4  # of the vendors' guide: a mean absolute difference up to here is normal
LOSS, GRADIENT_NORM, OUTPUT = "loss", "gradient norm", "output"
_WATCHED = {watched_rows.LOSS: LOSS, watched_rows.GRADIENT_NORM: GRADIENT_NORM}
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
_SCALED, _UNSCALED, _UPDATED = "mul", "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"
_OF_FACTORS = frozenset({"_to_copy", "reciprocal", "copy_", "clone"})
_AROUND = 1 << 16  # bytes that the system brings into memory around each that is read
_READ_AT_ONCE = 1 << 26


class Scaling:
    """Knows the factors of a GradScaler: contents by which gradients are unscaled, and that are updated."""

    def __init__(self) -> None:
        self._sources: dict[int, int] = {}  # content -> what it is a copy or the reciprocal of
        self._factors: set[int] = set()
        self._products: dict[int, tuple[int, ...]] = {}  # number of a call -> the contents that it multiplies

    def see(self, call: Call) -> None:
        """Look at the next call of a record."""
        name = base_name(call.operator)
        if name in _OF_FACTORS and call.inputs and call.outputs:
            if call.outputs[0].content and _is_scalar(call.outputs[0]):
                self._sources[call.outputs[0].content] = call.inputs[0].content
        elif name == _SCALED and call.phase == FORWARD and all(_is_scalar(each) for each in call.outputs):
            self._products[call.number] = tuple(each.content for each in call.inputs)
        elif name == _UPDATED:
            self._factors.update(each.content for each in (*call.inputs[:1], *call.outputs[:1]))
        elif name == _UNSCALED:
            self._factors.update(
                content for each in call.inputs[-1:] for content in self._origins(each.content)
            )

    def makes(self, call: Call) -> bool:
        """Whether a call multiplies by a factor, or makes the next one; to be asked once all calls were seen."""
        if base_name(call.operator) == _UPDATED:
            return True
        contents = self._products.get(call.number, ())
        return any(not self._factors.isdisjoint(self._origins(content)) for content in contents)

    def _origins(self, content: int) -> Iterator[int]:
        seen: set[int] = set()
        while content and content not in seen:
            seen.add(content)
            yield content
            content = self._sources.get(content, 0)


def network_differences(
    pairs: Sequence[CallPair], scaling: Scaling | None = None
) -> tuple[NetworkDifference, ...]:
    """Of each step: the last result inside the model, and the loss, before a GradScaler's factor."""
    scaling = scaling or Scaling()
    # the model in which most of the forward pass happens: a loss may be a module, too
    calls = (pair.mine for pair in pairs if pair.mine is not None)
    models = Counter(call.model for call in calls if call.phase == FORWARD and call.model)
    model = models.most_common(1)[0][0] if models else ""
    found: dict[tuple[int, str], float] = {}
    ranks: dict[int, int] = {}
    for pair in pairs:
        call = pair.mine
        # Results but the first are by-products, as the sum of weights of a loss is.
        metrics = pair.outputs[0].metrics if pair.outputs else None
        if call is None or metrics is None or not _counts(call) or not _is_float(pair.outputs[0].mine):
            continue
        mean_abs = math.inf if math.isnan(metrics.mean_abs) else metrics.mean_abs
        if metrics.count == 1 and not scaling.makes(call):
            # a scalar that is computed outside of the model is rather the loss than one inside
            rank = 0 if model and call.model == model else 1
            if rank >= ranks.get(call.step, 0):
                ranks[call.step] = rank
                found[call.step, LOSS] = mean_abs
        elif metrics.count > 1 and call.model == model != "":
            found[call.step, OUTPUT] = mean_abs
    keys = sorted(found, key=lambda key: (key[0], (OUTPUT, LOSS).index(key[1])))
    return tuple(NetworkDifference(what, step, found[step, what]) for step, what in keys)


def _counts(call: Call) -> bool:
    return call.phase == FORWARD and not is_plumbing(call.operator)


class Gathering:
    """Picks loss and gradients out of the calls of a record while they pass by: to make them again takes long."""

    def __init__(self) -> None:
        self.scaling = Scaling()
        # step, model -> when, what; and what a product may be the scaled form of, with its call
        self._losses: dict[tuple[int, str], tuple[int, TensorRecord]] = {}
        self._unscaled: dict[tuple[int, str], tuple[Call, tuple[int, TensorRecord] | None]] = {}
        self._models: Counter[str] = Counter()
        self._made: dict[int, int] = {}  # content -> the step whose backward pass has made it
        self._step = 0  # of it
        self._squares: dict[int, float] = {}
        self._gradients: list[tuple[int, TensorRecord]] = []  # whose norms are yet to be measured
        self._watched: dict[str, dict[int, TensorRecord]] = {LOSS: {}, GRADIENT_NORM: {}}

    def passing(self, calls: Iterable[Call]) -> Iterator[Call]:
        """The calls, each looked at."""
        for at, call in enumerate(calls):
            self.scaling.see(call)
            if call.operator in _WATCHED:
                self._watched[_WATCHED[call.operator]].update((call.step, each) for each in call.outputs[:1])
            elif call.phase == FORWARD:
                self._see_forward(at, call)
            elif call.phase == BACKWARD:
                if call.step != self._step:  # nobody asks for what earlier steps made
                    self._made, self._step = {}, call.step
                self._made.update((tensor.content, call.step) for tensor in call.outputs if tensor.content)
            elif call.phase == OPTIMIZER:
                self._see_optimizer(call)
            yield call

    def _see_forward(self, at: int, call: Call) -> None:
        if call.model:
            self._models[call.model] += 1
        tensor = call.outputs[0] if call.outputs else None
        if tensor is not None and _counts(call) and _is_float(tensor) and _is_scalar(tensor):
            key = call.step, call.model
            name = base_name(call.operator)
            if name == _UPDATED:
                return
            self._unscaled.pop(key, None)
            if name == _SCALED:  # whether it is by a factor, later calls tell
                self._unscaled[key] = call, self._losses.get(key)
            self._losses[key] = (at, tensor)

    def _see_optimizer(self, call: Call) -> None:
        """A gradient is what the backward pass has made and an optimizer reads; it counts once."""
        for tensor in call.inputs:
            if self._made.get(tensor.content) == call.step and not tensor.role and _is_float(tensor):
                del self._made[tensor.content]
                if tensor.statistics is None:
                    self._gradients.append((call.step, tensor))
                else:
                    known = self._squares.get(call.step, 0.0)
                    self._squares[call.step] = known + tensor.statistics.norm**2

    def losses(self, record: Record) -> dict[int, float]:
        """By step: the last scalar that the forward pass computed outside of the model, else inside."""
        found = self._watched[LOSS]
        if not found:
            main = self._models.most_common(1)[0][0] if self._models else None
            losses = dict(self._losses)
            for key, (call, before) in self._unscaled.items():
                if self.scaling.makes(call):
                    losses.pop(key)
                    losses.update({key: before} if before is not None else {})
            ranked = sorted(losses.items(), key=lambda item: (item[0][1] != main, item[1][0]))
            found = {step: tensor for (step, _), (_, tensor) in ranked}
        return {
            step: math.nan if each.nans else math.inf if each.infinities else each.mean
            for step, each in _read(record, found.items())
        }

    def gradient_norms(self, record: Record) -> dict[int, float]:
        """By step: the norm of all gradients."""
        if self._watched[GRADIENT_NORM]:
            return {step: each.norm for step, each in _read(record, self._watched[GRADIENT_NORM].items())}
        squares = dict(self._squares)
        steps = {*squares, *(step for step, _ in self._gradients)}
        for step, each in _read(record, self._gradients if len(steps) > 1 else ()):
            squares[step] = squares.get(step, 0.0) + each.norm**2
        return {step: math.sqrt(square) for step, square in squares.items()}


def curves(sides: Sequence[tuple[Gathering, Record]]) -> tuple[NetworkCurve, ...]:
    """Loss and gradient norm over the steps, of mine and golden, where there are several steps."""
    found = []
    for name, figure in ((LOSS, Gathering.losses), (GRADIENT_NORM, Gathering.gradient_norms)):
        figures = [figure(*side) for side in sides]
        ours, theirs = figures[0], figures[1] if len(figures) > 1 else {}
        steps = tuple(sorted({*ours, *theirs}))
        if len(steps) > 1:
            found.append(
                NetworkCurve(name, steps, tuple(map(ours.get, steps)), tuple(map(theirs.get, steps)))
            )
    return tuple(found)


def _is_scalar(tensor: TensorRecord) -> bool:
    return math.prod(tensor.shape) == 1


def _is_float(tensor: TensorRecord) -> bool:
    return "float" in tensor.dtype


def _read(record: Record, tensors: Iterable[tuple[int, TensorRecord]]) -> Iterator[tuple[int, Statistics]]:
    read = 0
    for step, tensor in tensors:
        statistics = with_statistics(record, tensor).statistics
        if statistics is not None:
            yield step, statistics
        read += tensor.nbytes + _AROUND
        if read > _READ_AT_ONCE:
            record.release()
            read = 0
    record.release()


def with_statistics(record: Record, tensor: TensorRecord) -> TensorRecord:
    """A tensor with its statistics, taken now if only its bytes were kept."""
    if tensor.statistics is not None or tensor.offset is None:
        return tensor
    from torchferry.accuracy.native.library import statistics_of

    array = record.array(tensor)
    return replace(tensor, statistics=statistics_of(array.ctypes.data, tensor.dtype, tensor.elements))


# What a reader should know about a comparison besides its figures. No torch.

LONELY_RANKS = Text(
    "ranks {ranks} are in only one of the recordings and were ignored",
    "rank {ranks} 只在其中一份记录里，未参与比较",
)
_INCOMPLETE = Text(
    "{side}: the run was interrupted; the recording ends at its last complete operator",
    "{side}：运行被中断；记录到最后一个完整的算子为止",
)
_SIDE = {"mine": Text("mine", "待测记录"), "golden": Text("golden", "标杆记录")}
_SELECTED = Text("{side}: only some calls were recorded: {selected}", "{side}：只记录了部分调用：{selected}")
_SLICED = Text("{side}: recorded in part: {in_part}", "{side}：只记录了一部分：{in_part}")
_COMPILED = Text(
    "{side}: some code was compiled, so its operators are not visible",
    "{side}：部分代码经过编译，其中的算子无法看到",
)
_NOTE = Text("{side}: {note}", "{side}：{note}")
_NO_TORCH = Text(
    "PyTorch is not installed here, so golden was assumed to be correct and nothing was recomputed "
    "in double precision",
    "此处未安装 PyTorch：以标杆为准，没有用双精度重新计算",
)
_UNMATCHED = Text(
    "calls only in {side}: {calls}{more} (--verbose lists them)",
    "只有{side}调用：{calls}{more}（--verbose 可列出）",
)
_MORE = Text(", and {count} more", "，另有 {count} 个")
_NAMED = 6  # operators of one side
_PROGRAMS = Text(
    "the recordings are of different programs: {mine} and {golden}", "这是不同的程序：{mine} 与 {golden}"
)
_VERSIONS = Text(
    "different versions of PyTorch, which may call other operators: {mine} here, {golden} in golden",
    "PyTorch 版本不同，调用的算子可能不同：待测为 {mine}，标杆为 {golden}",
)
_LEFT_OUT = Text(
    "too many calls for full figures: for {count} correct calls only the verdict is reported",
    "调用过多，其中 {count} 个正常的调用只报告判定，不列出各项指标",
)


def notes_of_comparison(
    mine: RecordHeader,
    golden: RecordHeader | None,
    pairs: PairRows,
    left_out: int = 0,
    bases: Counter[str] | None = None,
) -> tuple[Text, ...]:
    """All that is to be said about two records and the calls that have no counterpart."""
    found = [*_of_header(mine, "mine"), *(_of_header(golden, "golden") if golden else ())]
    if mine.kept is Kept.TENSORS and find_spec("torch") is None:
        found.append(_NO_TORCH)
    if golden is not None:
        found += [*_of_both(mine, golden), *_of_unmatched(pairs)]
    if left_out:
        found.append(_LEFT_OUT.format(count=left_out))
    parts = [text.format(count=bases[basis]) for basis, text in _JUDGED_BY.items() if bases and bases[basis]]
    if parts:
        joined = Text(", ".join(each.en for each in parts), "，".join(each.zh for each in parts))
        found.append(_HOW.format(parts=joined))
    return tuple(found)


def unmatched_counts(pairs: PairRows) -> tuple[int, int]:
    """Calls that the other side should have and has not: of mine, of golden."""
    sides = Counter((each.has_mine, each.has_golden) for each in pairs.outlines() if each.how == NOTHING)
    return sides[True, False], sides[False, True]


def _of_unmatched(pairs: PairRows) -> Iterator[Text]:
    """The calls that the other side should have and has not: by operator and line, the first ones first."""
    for side, has_mine in (("mine", True), ("golden", False)):
        calls = Counter(
            (each.operator, each.place)
            for each in pairs.outlines()
            if each.how == NOTHING and each.has_mine is has_mine and each.has_golden is not has_mine
        )
        named = [
            f"{one_line(operator)}{f' x {count}' if count > 1 else ''}{f' ({one_line(place)})' if place else ''}"
            for (operator, place), count in list(calls.items())[:_NAMED]
        ]
        left = sum(list(calls.values())[_NAMED:])
        more = _MORE.format(count=left) if left else Text("", "")
        if named:
            yield _UNMATCHED.format(side=_SIDE[side], calls=", ".join(named), more=more)


def _of_both(mine: RecordHeader, golden: RecordHeader) -> Iterator[Text]:
    words = (header.program.partition(" ")[0] for header in (mine, golden))
    # a module, or what is no command line, has no name of a script
    scripts = {word.rpartition("/")[2] for word in words if not word.startswith("-")} - {""}
    if len(scripts) > 1:
        yield _PROGRAMS.format(mine=mine.program, golden=golden.program)
    if mine.torch.partition("+")[0] != golden.torch.partition("+")[0] and mine.torch and golden.torch:
        yield _VERSIONS.format(mine=mine.torch, golden=golden.torch)


def _of_header(header: RecordHeader, side: str) -> Iterator[Text]:
    name = _SIDE[side]
    if not header.complete:
        yield _INCOMPLETE.format(side=name)
    if header.selected:
        yield _SELECTED.format(side=name, selected=header.selected)
    if header.in_part:
        yield _SLICED.format(side=name, in_part=header.in_part)
    for note in header.notes:
        yield _COMPILED.format(side=name) if note == "compiled" else _NOTE.format(side=name, note=note)
