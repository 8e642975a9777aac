"""Random data for the models, drawn on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from .entry import Batch

CLASSES = 10


def pictures(count: int, height: int, width: int | None = None, channels: int = 3) -> Tensor:
    """Normalized pictures."""
    return torch.randn(count, channels, height, width or height)


def labels(*shape: int, classes: int = CLASSES) -> Tensor:
    """Class numbers."""
    return torch.randint(0, classes, shape)


def blobs(count: int, height: int, width: int, channels: int = 1) -> Tensor:
    """Masks of 0 and 1 with connected regions, as drawn shapes have."""
    coarse = torch.rand(count, channels, max(height // 8, 2), max(width // 8, 2))
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear", align_corners=False)
    return (smooth > 0.5).float()


def labelled_pictures(count: int, size: int) -> Batch:
    """A batch for a classifier."""
    return {"pictures": pictures(count, size), "labels": labels(count)}
