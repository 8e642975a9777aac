"""Calls of which large tensors were kept in part: what can be computed again from the slices that there are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from torchferry.accuracy.judge.divisions import DividedAxis, Division, divisions_of
from torchferry.accuracy.judge.execution import TensorSource
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Judgement
from torchferry.accuracy.model import Call, KeptPart, Slices, TensorRecord, Value


class PartOfRecord:
    """The slices of one call as a call by itself: `call`, and where its contents come from."""

    def __init__(self, whole: Call, source: TensorSource, division: Division, axis: DividedAxis) -> None:
        self._source = source
        self._cut: dict[
            str, tuple[TensorRecord, Slices]
        ] = {}  # of those that were kept as a whole, what is to be read
        self._part = next(each.part for each in (*whole.inputs, *whole.outputs) if each.part is not None)
        inputs = [self._sliced(each, axis.inputs.get(at)) for at, each in enumerate(whole.inputs)]
        outputs = [
            self._sliced(each, axis.outputs.get(at))
            if at in division.outputs
            else replace(each, offset=None, part=None)
            for at, each in enumerate(whole.outputs)
        ]
        arguments = {**dict(whole.arguments), **division.arguments}
        for name, item in axis.arguments:
            arguments[name] = _resized(arguments.get(name), item, self._part.slices)
        self.call = replace(
            whole, inputs=tuple(inputs), outputs=tuple(outputs), arguments=tuple(arguments.items())
        )

    def _sliced(self, record: TensorRecord, dimension: int | None) -> TensorRecord:
        kept = record.kept_part
        if kept is not None or dimension is None:
            return kept or record
        part = self._part
        places = [slice(None)] * len(record.shape)
        places[dimension] = slice(0, part.step * part.slices, part.step)
        self._cut[record.name] = (record, tuple(places))
        shape = (*record.shape[:dimension], part.slices, *record.shape[dimension + 1 :])
        stride = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
        return replace(record, shape=shape, stride=stride, is_dense=True, content=0)

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        """A copy that may be written to."""
        if tensor.name in self._cut:
            return self._source.part(*self._cut[tensor.name])
        return self._source.tensor(tensor)

    def part(self, tensor: TensorRecord, where: Slices, rows: torch.Tensor | None = None) -> torch.Tensor:
        """A copy of what lies there, of some rows only."""
        found = self.tensor(tensor)
        return (found if rows is None else found.index_select(0, rows))[where].clone()

    def release(self) -> None:
        """Give back the memory of what was read."""
        self._source.release()


def judge_in_part(pair: CallPair, mine: TensorSource, golden: TensorSource | None) -> Judgement | None:
    """Judge a call by what was kept of it; None: the slices that there are do not tell what is right."""
    assert pair.mine is not None
    ours = part_of(pair.mine, mine)
    if ours is None:
        return None
    theirs = None if pair.golden is None or golden is None else part_of(pair.golden, golden)
    judge = Judge(ours, theirs).judge
    return judge(replace(pair, mine=ours.call, golden=None if theirs is None else theirs.call))


def part_of(call: Call, source: TensorSource) -> PartOfRecord | None:
    """A call of the slices alone, that gives of the results what was kept of them; None: it does not depend on these
    slices alone."""
    for division in divisions_of(call):
        for axis in division.axes:
            if division.rows is None and _covers(axis, division, call):
                return PartOfRecord(call, source, division, axis)
    return None


def _covers(axis: DividedAxis, division: Division, call: Call) -> bool:
    """Whether all that was kept in part was cut along this axis, in the same way."""
    outputs = [each if at in division.outputs else None for at, each in enumerate(call.outputs)]
    parts: set[tuple[int, int]] = set()
    for places, records in ((axis.inputs, call.inputs), (axis.outputs, outputs)):
        if not _fits(places, records, parts):
            return False
    return len(parts) == 1


def _fits(
    places: Mapping[int, int], records: Sequence[TensorRecord | None], parts: set[tuple[int, int]]
) -> bool:
    for at, record in enumerate(records):
        part = None if record is None else record.part
        if record is None or part is None:
            continue
        dimension = places.get(at)
        if (
            dimension is None
            or dimension % len(record.shape) != part.dimension
            or record.dims != record.shape
        ):
            return False
        parts.add(_slices_of(part))
    return True


def _slices_of(part: KeptPart) -> tuple[int, int]:
    return part.step, part.slices


def _resized(value: Value, item: int | None, size: int) -> Value:
    """An argument that holds the size of what is divided: a number, or an item of a list."""
    if item is None:
        return size
    return (*value[:item], size, *value[item + 1 :]) if isinstance(value, tuple) else value
