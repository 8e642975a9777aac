"""What a whole network answers on both sides: its output and loss, and how loss and gradients go over the steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torchferry.accuracy.compare import statistics as watched_rows
from torchferry.accuracy.compare.model import Curve, NetworkDifference, Pair
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.operators.names import base_name, is_plumbing

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

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
    pairs: Sequence[Pair], scaling: Scaling | None = None
) -> tuple[NetworkDifference, ...]:
    """Of each step: the last result inside the model, and the loss, before a GradScaler's factor."""
    scaling = scaling or Scaling()
    model = main_model(pair.mine for pair in pairs if pair.mine is not None)
    found: dict[tuple[int, str], float] = {}
    ranks: dict[int, int] = {}
    for pair in pairs:
        call = pair.mine
        # Results but the first are by-products, as the sum of weights of a loss is.
        metrics = pair.outputs[0].metrics if pair.outputs else None
        if call is None or metrics is None or not _counts(call) or not _is_float(pair.outputs[0].mine):
            continue
        if metrics.count == 1 and not scaling.makes(call):
            if _loss_rank(call, model) >= ranks.get(call.step, 0):
                ranks[call.step] = _loss_rank(call, model)
                found[call.step, LOSS] = _mean_abs(metrics.mean_abs)
        elif metrics.count > 1 and call.model == model != "":
            found[call.step, OUTPUT] = _mean_abs(metrics.mean_abs)
    order = {OUTPUT: 0, LOSS: 1}
    keys = sorted(found, key=lambda key: (key[0], order[key[1]]))
    return tuple(NetworkDifference(what, step, found[step, what]) for step, what in keys)


def main_model(calls: Iterable[Call]) -> str:
    """The model in which most of the forward pass happens: a loss may be a module, too."""
    counts = Counter(call.model for call in calls if call.phase == FORWARD and call.model)
    return counts.most_common(1)[0][0] if counts else ""


def _counts(call: Call) -> bool:
    return call.phase == FORWARD and not is_plumbing(call.operator)


def _loss_rank(call: Call, model: str) -> int:
    """A scalar that is computed outside of the model is rather the loss than one inside."""
    return 0 if model and call.model == model else 1


def _mean_abs(value: float) -> float:
    return math.inf if math.isnan(value) else value


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
        values = {step: _scalar(tensor) for step, tensor in _read(record, found.items())}
        return {step: value for step, value in values.items() if value is not None}

    def gradient_norms(self, record: Record) -> dict[int, float]:
        """By step: the norm of all gradients."""
        if self._watched[GRADIENT_NORM]:
            watched = self._watched[GRADIENT_NORM].items()
            norms = {step: _norm(tensor) for step, tensor in _read(record, watched)}
            return {step: norm for step, norm in norms.items() if norm is not None}
        squares = dict(self._squares)
        steps = {*squares, *(step for step, _ in self._gradients)}
        for step, tensor in _read(record, self._gradients if len(steps) > 1 else ()):
            squares[step] = squares.get(step, 0.0) + (_norm(tensor) or 0.0) ** 2
        return {step: math.sqrt(square) for step, square in squares.items()}


def curves(sides: Sequence[tuple[Gathering, Record]]) -> tuple[Curve, ...]:
    """Loss and gradient norm over the steps, of mine and golden, where there are several steps."""
    found = []
    for name, figure in ((LOSS, Gathering.losses), (GRADIENT_NORM, Gathering.gradient_norms)):
        figures = [figure(*side) for side in sides]
        ours, theirs = figures[0], figures[1] if len(figures) > 1 else {}
        steps = tuple(sorted({*ours, *theirs}))
        if len(steps) > 1:
            found.append(Curve(name, steps, tuple(map(ours.get, steps)), tuple(map(theirs.get, steps))))
    return tuple(found)


def _is_scalar(tensor: TensorRecord) -> bool:
    return math.prod(tensor.shape) == 1


def _is_float(tensor: TensorRecord) -> bool:
    return "float" in tensor.dtype


def _read(record: Record, tensors: Iterable[tuple[int, TensorRecord]]) -> Iterator[tuple[int, TensorRecord]]:
    """With their statistics; what was read of the file for them is given back on the way."""
    read = 0
    for step, tensor in tensors:
        yield step, with_statistics(record, tensor)
        read += tensor.nbytes + _AROUND
        if read > _READ_AT_ONCE:
            record.release()
            read = 0
    record.release()


def _scalar(tensor: TensorRecord) -> float | None:
    statistics = tensor.statistics
    if statistics is None:
        return None
    return math.nan if statistics.nans else math.inf if statistics.infinities else statistics.mean


def _norm(tensor: TensorRecord) -> float | None:
    return None if tensor.statistics is None else tensor.statistics.norm


def with_statistics(record: Record, tensor: TensorRecord) -> TensorRecord:
    """A tensor with its statistics, taken now if only its bytes were kept."""
    if tensor.statistics is not None or tensor.offset is None:
        return tensor
    from torchferry.accuracy.native.statistics import statistics_of

    array = record.array(tensor)
    return replace(tensor, statistics=statistics_of(array.ctypes.data, tensor.dtype, tensor.elements))
