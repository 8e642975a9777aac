"""Small problems that optimizers and amp are tried on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn


def small_net(device: str = "cpu") -> nn.Module:
    """A convolution, a batch normalisation and a linear layer with the same weights at every call."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3)
    )
    return net.to(device)


def batches(count: int, device: str = "cpu") -> Iterator[tuple[Tensor, Tensor]]:
    """Images and classes, the same at every call."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        images = torch.randn(8, 2, 4, 4, generator=generator)
        yield images.to(device), torch.randint(3, (8,), generator=generator).to(device)


def parameters(scale: float = 1.0) -> list[nn.Parameter]:
    """A matrix, a vector, a scalar and a filter, of sizes that no vector width divides."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((5, 7), (11,), (), (3, 2, 3, 3))
    return [nn.Parameter(scale * torch.randn(shape, generator=generator)) for shape in shapes]


def set_gradients(params: list[nn.Parameter], step: int) -> None:
    """Give every parameter a gradient that depends on the step alone; accumulates into one that is there."""
    generator = torch.Generator().manual_seed(100 + step)
    for param in params:
        gradient = torch.randn(param.shape, generator=generator)
        if param.grad is None:
            param.grad = gradient
        else:
            param.grad.copy_(gradient)
