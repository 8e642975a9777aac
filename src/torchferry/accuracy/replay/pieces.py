"""Calls with large tensors in pieces, where each element depends on those at its own place alone: a judgement takes
many times the memory of what it judges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from torchferry.accuracy.model import Call, TensorRecord
from torchferry.accuracy.replay.execution import Source
from torchferry.accuracy.replay.margins import margins_of

LARGE = 1 << 20  # elements; smaller ones are judged as a whole
PIECE = 1 << 15  # what fits into a processor's caches, and is not worth a second thread
WHOLE = 1 << 24  # up to here a call that is wrong is looked at as a whole, to say what is wrong with it


def is_divisible(call: Call) -> bool:
    """Whether a call is worth it, and means the same in pieces."""
    shapes = {record.shape for record in call.outputs}
    if len(shapes) != 1 or not margins_of(call.operator).pointwise:
        return False
    (shape,) = shapes
    records = (*call.inputs, *call.outputs)
    return (
        math.prod(shape) > LARGE
        and "_foreach_" not in call.operator
        and all(record.offset is not None for record in records)
        and all(record.shape == shape or math.prod(record.shape) == 1 for record in call.inputs)
    )


class Divided:
    """The contents of one call, flat, each read once."""

    def __init__(self, call: Call, source: Source) -> None:
        self.call = call
        self._source = source
        self._records = {record.name: record for record in (*call.inputs, *call.outputs)}
        self._flat: dict[str, torch.Tensor] = {}
        self._begin = 0

    def pieces(self) -> Iterator[Call]:
        """Calls of which this is the source, one after the other."""
        count = math.prod(self.call.outputs[0].shape)
        for self._begin in range(0, count, PIECE):
            size = min(PIECE, count - self._begin)
            yield replace(
                self.call,
                inputs=tuple(_shortened(record, size) for record in self.call.inputs),
                outputs=tuple(_shortened(record, size) for record in self.call.outputs),
            )

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        """The part of it that belongs to the piece; a copy that may be written to."""
        record = self._records[tensor.name]
        if math.prod(record.shape) == 1:
            return self._source.tensor(record)
        if tensor.name not in self._flat:
            self._flat[tensor.name] = self._source.tensor(record).reshape(-1)
        return self._flat[tensor.name][self._begin : self._begin + tensor.shape[0]].clone()


def _shortened(record: TensorRecord, size: int) -> TensorRecord:
    return record if math.prod(record.shape) == 1 else replace(record, shape=(size,), stride=(1,))
