"""Makes the CPU's libraries ready, so that their start does not count as the time of the first operators."""

from __future__ import annotations

import torch


def warm_up() -> None:
    """Start threads, and what convolutions and products of matrices need; draws no random numbers."""
    picture = torch.ones(1, 8, 16, 16, requires_grad=True)
    kernel = torch.ones(8, 8, 3, 3, requires_grad=True)
    rows = torch.conv2d(picture, kernel, padding=1).flatten(2)
    torch.autograd.backward(torch.bmm(rows, rows.transpose(1, 2)).sum())
