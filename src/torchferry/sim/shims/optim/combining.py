"""Tensors that share one flat buffer, as the vendors' fused optimizers and gradient scaling lay them out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


@torch.no_grad()
def combine(tensors: Sequence[Tensor], copy_values: bool = True) -> Tensor | None:
    """Move tensors of one dtype and device into one buffer, in place, and answer that buffer."""
    if not tensors or not sum(tensor.numel() for tensor in tensors):
        return None
    first = tensors[0]
    if any(tensor.dtype != first.dtype or tensor.device != first.device for tensor in tensors):
        raise RuntimeError("tensors to combine must have the same dtype and be on the same device")
    buffer = torch.zeros(sum(tensor.numel() for tensor in tensors), dtype=first.dtype, device=first.device)
    offset = 0
    for tensor in tensors:
        part = _part(buffer, offset, tensor)
        if copy_values:
            part.copy_(tensor)
        tensor.data = part
        offset += tensor.numel()
    return buffer


def part_of(buffer: Tensor | None, offset: int, size: int) -> Tensor | None:
    """A stretch of a combined buffer that shares its memory."""
    if buffer is None or size == 0:
        return None
    if offset + size > buffer.numel():
        raise RuntimeError(f"{size} elements from {offset} on are more than the buffer's {buffer.numel()}")
    return buffer.narrow(0, offset, size)


def is_combined(buffer: Tensor | None, tensors: Sequence[Tensor | None]) -> bool:
    """Whether every tensor still lies in the buffer."""
    full = [tensor for tensor in tensors if tensor is None or tensor.numel()]  # an empty one lies nowhere
    if not full:
        return True
    if buffer is None:
        return False
    start = buffer.data_ptr()
    end = start + buffer.numel() * buffer.element_size()
    return all(
        tensor is not None and tensor.device == buffer.device and start <= tensor.data_ptr() < end
        for tensor in full
    )


def _part(buffer: Tensor, offset: int, like: Tensor) -> Tensor:
    """Where a tensor goes: with its own strides if it is dense (channels last), else row by row."""
    dense = torch.empty_like(like, device="meta")
    return torch.as_strided(buffer, like.size(), dense.stride(), offset)
