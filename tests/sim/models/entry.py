"""What the catalogue knows of one model: how to build it, what to feed it and how to train it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from torchferry.text import Text

Batch = dict[str, Tensor]
Loss = Callable[[Any, Batch], Tensor]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class Origin(Enum):
    """Where an architecture comes from."""

    TORCHVISION = "torchvision"
    TIMM = "timm"
    OWN = "own"


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer of most image models."""
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4)


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer of most language and generative models."""
    return torch.optim.Adam(parameters, lr=1e-3)


@dataclass(frozen=True)
class Turn:
    """One update within a training step; models that train against each other take several."""

    loss: Loss
    parts: tuple[str, ...] = ("",)  # the submodules that this turn's optimizer updates; "" is the whole model
    clip: float | None = None  # the largest norm of the gradients


@dataclass(frozen=True)
class ModelEntry:
    """One row of the guide's table."""

    name: str
    origin: Origin
    source: str  # the library's function, or what was published
    build: Callable[[], nn.Module]
    batch: Callable[[], Batch]  # drawn on the CPU
    turns: tuple[Turn, ...]
    optimizer: MakeOptimizer = sgd
    note: Text | None = None  # what was made smaller, or which of several models of that name this is


def trained_with(loss: Loss, clip: float | None = None) -> tuple[Turn, ...]:
    """The turns of a model that has one loss."""
    return (Turn(loss, clip=clip),)
