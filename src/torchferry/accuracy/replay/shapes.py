"""Calls of which only the shape can be wrong: views."""

from __future__ import annotations

import torch

from torchferry.accuracy.compare.model import Judgement, Sort, Verdict
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.accuracy.replay.execution import blank_inputs, execute, has_gaps, lies_in_inputs
from torchferry.accuracy.replay.operators import base_name, is_view
from torchferry.accuracy.replay.references import attempt
from torchferry.text import Text

_UNSAFE_VIEW = "_unsafe_view"  # PyTorch does not call it a view, so that autograd need not follow it
_SHAPE = Text("{output}: its shape is {mine}, not {right}", "{output}：形状为 {mine}，应为 {right}")


def is_mere_view(call: Call) -> bool:
    """Nothing was computed: the result is bytes of the inputs, or nobody has read it."""
    if base_name(call.operator) == _UNSAFE_VIEW:
        return lies_in_inputs(call)
    return is_view(call.operator) and (has_gaps(call) or lies_in_inputs(call))


def judge_shapes(call: Call, normal: Verdict) -> Judgement:
    """A view has no contents of its own: its shape is all that can be wrong."""
    blank = blank_inputs(call)
    for record, right in zip(call.outputs, attempt(lambda: execute(call, blank, "cpu")), strict=True):
        if right is not None and tuple(right.shape) != record.shape:
            return of_another_shape(record, right)
    return Judgement(normal)


def of_another_shape(record: TensorRecord, right: torch.Tensor) -> Judgement:
    """The judgement of an output whose shape is wrong."""
    why = _SHAPE.format(output=record.name, mine=list(record.shape), right=list(right.shape))
    return Judgement(Verdict.FAULT, Sort.SHAPE, record.name, basis="float64", why=why)
