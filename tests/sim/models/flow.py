"""Optical flow: RAFT."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torchferry.text import Text

from .data import pictures
from .entry import Batch, ModelEntry, Origin, trained_with
from .losses import decaying_sum
from .vision_libraries import torchvision

_UPDATES = 3
_LARGEST_FLOW = 400.0


def _frames() -> Batch:
    """Two frames, the flow between them, and where it is known."""
    height = width = 128
    return {
        "first": pictures(1, height, width).clamp(-1, 1),
        "second": pictures(1, height, width).clamp(-1, 1),
        "flow": 5 * torch.randn(1, 2, height, width),
        "known": (torch.rand(1, height, width) > 0.1).float(),
    }


def _sequence_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Every refinement counts, later ones more; flow that is unknown or too large does not."""
    estimates = model(batch["first"], batch["second"], num_flow_updates=_UPDATES)
    magnitude = batch["flow"].square().sum(1).sqrt()
    mask = ((batch["known"] > 0.5) & (magnitude < _LARGEST_FLOW))[:, None]
    losses = [(mask * (estimate - batch["flow"]).abs()).mean() for estimate in estimates]
    return decaying_sum(losses, 0.8)


ENTRIES = [
    ModelEntry(
        "RAFT",
        Origin.TORCHVISION,
        "raft_large",
        build=torchvision.models.optical_flow.raft_large,
        batch=_frames,
        turns=trained_with(_sequence_loss),
        note=Text(
            "3 flow updates instead of 12; frames of 128².", "光流迭代 3 次（原为 12 次）；帧大小 128²。"
        ),
    )
]
