"""Makes the CPU's libraries ready, so that their start does not count as the time of the first operators."""

from __future__ import annotations

import torch


def warm_up() -> None:
    """Start threads, and what convolutions and products of matrices need; draws no random numbers.

    Autograd's own threads are not started: a program that forks afterwards could not train in its children.
    """
    picture, kernel = torch.ones(1, 8, 16, 16), torch.ones(8, 8, 3, 3)
    result = torch.conv2d(picture, kernel, padding=1)
    sizes = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
    torch.ops.aten.convolution_backward(result, picture, kernel, None, *sizes)
    rows = result.flatten(2)
    torch.bmm(rows, rows.transpose(1, 2)).sum()
