"""What is done to all gradients of a step at once."""

from __future__ import annotations

from collections import defaultdict

import torch
import torch.distributed as dist
from torch import Tensor


def unscale(gradients: list[Tensor], scale: float, check: bool, combined: bool) -> bool:
    """Divide gradients by the loss scale, in place; answers whether one is not finite, if that is to be checked.

    Combined, they are copied into one tensor for each dtype and back, as the vendor's build does to save launches.
    """
    overflow = False
    for group in _by_dtype(gradients) if combined else [[gradient] for gradient in gradients]:
        flat = _flat(group) if combined else group[0]
        overflow = overflow or (check and not bool(torch.isfinite(flat).all()))
        if scale != 1.0:
            flat.mul_(1.0 / scale)
        if combined:
            _copy_back(flat, group)
    return overflow


def average_over_processes(gradients: list[Tensor]) -> None:
    """Give every process the mean of all processes' gradients, in place."""
    if not dist.is_initialized():
        return
    for group in _by_dtype(gradients):
        flat = _flat(group)
        dist.all_reduce(flat)
        _copy_back(flat.div_(dist.get_world_size()), group)


def _by_dtype(gradients: list[Tensor]) -> list[list[Tensor]]:
    groups: defaultdict[torch.dtype, list[Tensor]] = defaultdict(list)
    for gradient in gradients:
        groups[gradient.dtype].append(gradient)
    return list(groups.values())


def _flat(group: list[Tensor]) -> Tensor:
    return torch.cat([gradient.reshape(-1) for gradient in group])


def _copy_back(flat: Tensor, group: list[Tensor]) -> None:
    parts = torch.split(flat, [gradient.numel() for gradient in group])
    for gradient, part in zip(group, parts, strict=True):
        gradient.copy_(part.view_as(gradient))
