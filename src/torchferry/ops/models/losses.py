"""Where a backward pass begins: at a loss that the model or the user computes, or at all that the model answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch

_LOSS = "loss"


def own_loss(output: Any) -> torch.Tensor | None:
    """The loss that a model has computed itself, as those of transformers do."""
    found = output.get(_LOSS) if isinstance(output, Mapping) else getattr(output, _LOSS, None)
    return found if isinstance(found, torch.Tensor) and found.numel() == 1 and found.requires_grad else None


def differentiable(output: Any) -> list[torch.Tensor]:
    """The tensors of an output that autograd can go back from, each once."""
    found = {id(tensor): tensor for tensor in _tensors(output) if tensor.requires_grad}
    return list(found.values())


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _tensors(value)
    elif is_dataclass(output) and not isinstance(output, type):
        for field in fields(output):
            yield from _tensors(getattr(output, field.name))
