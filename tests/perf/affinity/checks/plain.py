"""The plain forms, as models write them, and shorthand for comparing with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
Function = Callable[..., Any]


def transposed_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channel shuffle as torchvision's shufflenetv2 has it."""
    batch, channels, height, width = x.size()
    x = x.view(batch, groups, channels // groups, height, width)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(batch, channels, height, width)


def stacked_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Overlap of all pairs as detectron2 computes it: both coordinates in one tensor."""
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (boxes1, boxes2)]
    sizes = torch.min(boxes1[:, None, 2:], boxes2[:, 2:]) - torch.max(boxes1[:, None, :2], boxes2[:, :2])
    shared = sizes.clamp(min=0).prod(dim=2)
    return torch.where(shared > 0, shared / (areas[0][:, None] + areas[1] - shared), shared.new_zeros(1))


def outcome(function: Function, inputs: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    """What a function gives for copies of the inputs, and the gradients of its weighted sum."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    total = sum((result * weight).sum() for result, weight in zip(results, weights, strict=True))
    gradients = torch.autograd.grad(total, leaves)  # type: ignore[arg-type]
    return [tensor.detach().cpu() for tensor in (*results, *gradients)]


def same(first: Sequence[Tensor], second: Sequence[Tensor]) -> None:
    """Fail unless all are the same to the bit."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def random_boxes(count: int, generator: torch.Generator, size: float = 100.0) -> Tensor:
    """Boxes with corners in order, many of which overlap."""
    corners = torch.rand(count, 2, generator=generator) * size
    return torch.cat((corners, corners + torch.rand(count, 2, generator=generator) * size / 3), dim=1)
