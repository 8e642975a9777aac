"""Draws a model's inputs."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import torch

from torchferry.ops.cases import dtypes
from torchferry.ops.cases.model import Contents, Draw, TensorInput
from torchferry.ops.cases.tensor_text import lines_for
from torchferry.ops.model import Special
from torchferry.ops.models.inputs import InputValue

_FRACTIONS = Contents(Draw.NORMAL)
# Of integers nothing is known: 0 and 1 are in range for every embedding, class or mask.
_INTEGERS = Contents(Draw.INTS, 0, 2)


def built(value: InputValue, device: torch.device) -> Any:
    """An argument as the model gets it."""
    if isinstance(value, TensorInput):
        return drawn(value).to(device)
    if isinstance(value, (list, tuple)):
        return [built(each, device) for each in value]
    if isinstance(value, dict):
        return {name: built(each, device) for name, each in value.items()}
    if isinstance(value, Special):
        return device if value.kind == "device" else getattr(torch, value.text)
    return value


def drawn(tensor: TensorInput) -> torch.Tensor:
    """A tensor of the shape, dtype, contents and strides that are asked for, made as in the file of a case."""
    if tensor.contents.draw is Draw.DEFAULT:
        contents = _FRACTIONS if dtypes.is_floating(tensor.dtype) else _INTEGERS
        tensor = replace(tensor, contents=contents)
    names: dict[str, Any] = {"torch": torch, "random": torch.default_generator}
    exec(dedent("\n".join(lines_for("tensor", tensor, {}))), names)
    made: torch.Tensor = names["tensor"]
    return made
