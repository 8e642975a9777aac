"""Calls with large tensors in parts: a judgement takes many times the memory of what it judges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from torchferry.accuracy.judge.divisions import DividedAxis, Division
from torchferry.accuracy.judge.execution import TensorSource
from torchferry.accuracy.model import Call, Slices, TensorRecord, TensorRef, Value

LARGE = 1 << 20  # elements of all tensors of a call; smaller ones are judged as a whole
BLOCK = 1 << 22  # of a part that is computed in its own precision, or in single precision
PIECE = 1 << 18  # of a part that is judged in double precision: what fits into a processor's caches
RESULTS = 1 << 10  # elements of a result from which its errors can be told from chance
WHOLE = 1 << 24  # up to here all of a result that is wrong is looked at, to say what is wrong with it
_OUTPUT, _INPUT = 200, 32  # bytes that the judgement of a whole takes for each element
MOST_BYTES = 192 << 20
Ranges = tuple[tuple[int, int], ...]  # start and stop, for each axis of a division


def is_large(call: Call) -> bool:
    """Whether it should be judged in parts."""
    return _elements((*call.inputs, *call.outputs)) > LARGE


def fits_as_a_whole(call: Call) -> bool:
    """Whether a call that has no parts can be judged at all without filling the memory."""
    return _OUTPUT * _elements(call.outputs) + _INPUT * _elements(call.inputs) <= MOST_BYTES


def _elements(records: Sequence[TensorRecord]) -> int:
    return sum(math.prod(record.shape) for record in records)


class Grid:
    """The parts of a call: blocks, and in them, cells."""

    def __init__(self, call: Call, division: Division) -> None:
        self._call, self._division = call, division
        self._blocks = self._halved([axis.size for axis in division.axes], BLOCK)
        self._cells = self._halved(self._blocks, PIECE)
        whole = tuple((0, axis.size) for axis in division.axes)
        self.blocks = _cut(whole, self._blocks)

    def cells(self, block: Ranges) -> list[Ranges]:
        """Of one block, in order."""
        return _cut(block, self._cells)

    @property
    def times_read(self) -> float:
        """How often what is read for a block is read for all of them, on average."""
        weight = _weight(self._call, self._division, self._blocks)
        return len(self.blocks) * weight / max(1, _elements((*self._call.inputs, *self._call.outputs)))

    def _halved(self, sizes: Sequence[int], most: int) -> list[int]:
        """Sizes of parts of no more elements than `most`, if that can be had."""
        found = list(sizes)
        while (now := _weight(self._call, self._division, found)) > most:
            halves = [
                [*found[:at], -(-size // 2), *found[at + 1 :]] for at, size in enumerate(found) if size > 1
            ]
            best = min(halves, key=lambda each: _weight(self._call, self._division, each), default=None)
            if best is None or _weight(self._call, self._division, best) >= now:
                break
            if now <= BLOCK and self._results(best) < RESULTS:
                break
            found = best
        return found

    def _results(self, sizes: Sequence[int]) -> int:
        axes = self._division.axes
        shapes = [_shape(self._call.outputs[at], at, "outputs", axes, sizes) for at in self._division.outputs]
        return max(map(math.prod, shapes))


def _cut(ranges: Ranges, sizes: Sequence[int]) -> list[Ranges]:
    cuts = [
        [(start, min(start + size, stop)) for start in range(begin, stop, size)]
        for (begin, stop), size in zip(ranges, sizes, strict=True)
    ]
    return list(itertools.product(*cuts))


def _weight(call: Call, division: Division, sizes: Sequence[int]) -> int:
    shapes = [
        _shape(record, at, "inputs", division.axes, sizes)
        for at, record in enumerate(call.inputs)
        if division.rows is None or at != division.rows[0]
    ]
    shapes += [_shape(call.outputs[at], at, "outputs", division.axes, sizes) for at in division.outputs]
    return sum(math.prod(shape) for shape in shapes)


def _shape(
    record: TensorRecord, at: int, side: str, axes: Sequence[DividedAxis], sizes: Sequence[int]
) -> tuple[int, ...]:
    shape = list(record.shape)
    for axis, size in zip(axes, sizes, strict=True):
        dimension = getattr(axis, side).get(at)
        if dimension is not None:
            shape[dimension] = size
    return tuple(shape)


class CallPart:
    """A part of a call: `call`, and where its contents come from."""

    def __init__(self, whole: Call, source: TensorSource, division: Division, ranges: Ranges) -> None:
        self._source, self._whole, self._division = source, whole, division
        self._slices: dict[str, tuple[TensorRecord, Slices]] = {}
        self._rows: torch.Tensor | None = None  # of a table, that the part reads
        self._places = torch.empty(0)  # in those rows
        self.ranges = ranges
        inputs = [self._cut(record, at, "inputs") for at, record in enumerate(whole.inputs)]
        outputs = [
            self._cut(record, at, "outputs") if at in division.outputs else replace(record, offset=None)
            for at, record in enumerate(whole.outputs)
        ]
        if division.rows is not None:
            table, indices = division.rows
            chosen = source.part(*self._slices[inputs[indices].name])
            self._rows, self._places = torch.unique(chosen, return_inverse=True)
            inputs[table] = _resized(inputs[table], (self._rows.numel(), *inputs[table].shape[1:]))
        self.call = replace(
            whole, inputs=tuple(inputs), outputs=tuple(outputs), arguments=tuple(self._arguments().items())
        )

    def _cut(self, record: TensorRecord, at: int, side: str) -> TensorRecord:
        slices = [slice(0, size) for size in record.shape]
        for axis, (start, stop) in zip(self._division.axes, self.ranges, strict=True):
            dimension = getattr(axis, side).get(at)
            if dimension is not None:
                slices[dimension] = slice(start, stop)
        self._slices[record.name] = (record, tuple(slices))
        return _resized(record, tuple(each.stop - each.start for each in slices))

    def _arguments(self) -> dict[str, Value]:
        found: dict[str, Value] = {**dict(self._whole.arguments), **self._division.arguments}
        for axis, (start, stop) in zip(self._division.axes, self.ranges, strict=True):
            for name, item in axis.arguments:
                value = found.get(name)
                if item is None:
                    found[name] = stop - start
                elif isinstance(value, tuple):
                    found[name] = (*value[:item], stop - start, *value[item + 1 :])
        return found

    def place(self, output: int) -> Slices:
        """Where an output of the part lies in that of the whole."""
        return self._slices[self._whole.outputs[output].name][1]

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        """A copy that may be written to."""
        record, slices = self._slices[tensor.name]
        if self._rows is None or self._division.rows is None:
            return self._source.part(record, slices)
        table, indices = (self._whole.inputs[at].name for at in self._division.rows)
        if tensor.name == indices:
            return self._places.to(getattr(torch, tensor.dtype))
        return self._source.part(record, slices, self._rows if tensor.name == table else None)

    def part(self, tensor: TensorRecord, where: Slices, rows: torch.Tensor | None = None) -> torch.Tensor:
        """A copy of what lies there in the part, of some rows only."""
        found = self.tensor(tensor)
        chosen: torch.Tensor = (found if rows is None else found.index_select(0, rows))[where]
        return chosen.clone()

    def release(self) -> None:
        """Give back the memory of what was read for the whole call."""
        self._source.release()


def _resized(record: TensorRecord, shape: tuple[int, ...]) -> TensorRecord:
    stride = tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
    return replace(record, shape=shape, stride=stride, is_dense=True, content=0)


class Item:
    """A call of an operator that takes lists, with one item of each: `call`, and where its contents come from."""

    def __init__(self, whole: Call, source: TensorSource, number: int, count: int) -> None:
        self._source = source
        self._records: dict[str, TensorRecord] = {}
        arguments = {name: _item(value, number, count) for name, value in whole.arguments}
        used = list(dict.fromkeys(_references(tuple(arguments.values()))))
        inputs = {at: self._renamed(whole.inputs[at]) for at in used}
        results = _item(whole.results, number, count)
        answered = list(dict.fromkeys(_references(results)))
        outputs = [
            at
            for at, record in enumerate(whole.outputs)
            if at in answered or _number_of(record.name) == number
        ]
        self.call = replace(
            whole,
            arguments=tuple((name, _moved(value, used)) for name, value in arguments.items()),
            inputs=tuple(inputs.values()),
            outputs=tuple(self._renamed(whole.outputs[at]) for at in outputs),
            results=_moved(results, outputs),
        )

    def _renamed(self, record: TensorRecord) -> TensorRecord:
        """input/self/self_3 is input/self/self_0 here."""
        number = _number_of(record.name)
        name = record.name if number is None else f"{record.name.rpartition('_')[0]}_0"
        self._records[name] = record
        return replace(record, name=name)

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        """The tensor of the whole call that this one is."""
        return self._source.tensor(self._records[tensor.name])

    def part(self, tensor: TensorRecord, where: Slices, rows: torch.Tensor | None = None) -> torch.Tensor:
        """A part of the tensor of the whole call that this one is."""
        return self._source.part(self._records[tensor.name], where, rows)

    def release(self) -> None:
        """Give back the memory of what was read for the whole call."""
        self._source.release()


def items_of(call: Call) -> int:
    """How many items the lists have that an operator is called with; 0: none, or not all as many."""
    lists = [
        value
        for _, value in call.arguments
        if isinstance(value, tuple) and value and all(isinstance(each, TensorRef) for each in value)
    ]
    sizes = {len(value) for value in lists}
    is_list_operator = call.operator.startswith(("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_"))
    return sizes.pop() if is_list_operator and len(sizes) == 1 else 0


def _number_of(name: str) -> int | None:
    """The place in its list of input/self/self_3."""
    parts = name.split("/")
    return int(parts[2].rpartition("_")[2]) if len(parts) > 2 else None


def _item(value: Value, number: int, count: int) -> Value:
    return (value[number],) if isinstance(value, tuple) and len(value) == count else value


def _references(value: Value) -> Iterator[int]:
    if isinstance(value, TensorRef):
        yield value.index
    elif isinstance(value, tuple):
        for each in value:
            yield from _references(each)


def _moved(value: Value, used: Sequence[int]) -> Value:
    """A value whose references count the tensors that are left."""
    if isinstance(value, TensorRef):
        return TensorRef(used.index(value.index))
    return tuple(_moved(each, used) for each in value) if isinstance(value, tuple) else value
