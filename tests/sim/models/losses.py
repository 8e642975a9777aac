"""Losses that several models share."""

from __future__ import annotations

import torch
from torch import Tensor


def dice_loss(probabilities: Tensor, targets: Tensor, smooth: float = 1.0) -> Tensor:
    """1 - Dice coefficient of each class, averaged; both are (batch, class, ...)."""
    axes = (0, *range(2, targets.dim()))
    overlap = (probabilities * targets).sum(axes)
    total = probabilities.sum(axes) + targets.sum(axes)
    return (1 - (2 * overlap + smooth) / (total + smooth)).mean()


def decaying_sum(losses: list[Tensor], factor: float) -> Tensor:
    """The sum in which the last counts whole and each one before it by `factor` less."""
    weights = [factor**distance for distance in reversed(range(len(losses)))]
    return torch.stack([weight * loss for weight, loss in zip(weights, losses, strict=True)]).sum()
