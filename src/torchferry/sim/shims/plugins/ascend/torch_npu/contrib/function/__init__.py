"""torch_npu.contrib.function: patterns that the adapter has a fast form of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...kernels import npu_iou as _iou
from ...kernels import npu_ptiou as _ptiou

__all__ = [
    "dropout_with_byte_mask",
    "fuse_add_softmax_dropout",
    "matmul_transpose",
    "npu_fast_condition_index_put",
    "npu_iou",
    "npu_ptiou",
    "roll",
]


def roll(input1: Tensor, shifts: Any, dims: Any) -> Tensor:
    """torch.roll."""
    return torch.roll(input1, shifts, dims)


def matmul_transpose(tensor1: Tensor, tensor2: Tensor) -> Tensor:
    """A matrix product with the second factor transposed."""
    return torch.matmul(tensor1, tensor2.transpose(-2, -1))


def npu_fast_condition_index_put(x: Tensor, condition: Tensor, value: float) -> Tensor:
    """x with a value where the condition holds."""
    if condition.dtype != torch.bool:
        raise TypeError("npu_fast_condition_index_put only takes a bool condition")
    return torch.where(condition, torch.as_tensor(value, dtype=x.dtype, device=x.device), x)


def fuse_add_softmax_dropout(
    training: bool,
    dropout: Any,
    attn_mask: Tensor,
    attn_scores: Tensor,
    attn_head_size: float,
    p: float = 0.5,
    dim: int = -1,
) -> Tensor:
    """dropout(softmax(scores over the root of the head size, plus mask)), as attention in BERT has it."""
    scores = attn_scores / attn_head_size**0.5 + attn_mask
    return functional.dropout(functional.softmax(scores, dim=dim), p, training)


def dropout_with_byte_mask(
    input1: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """torch.nn.functional.dropout."""
    return functional.dropout(input1, p, training, inplace)


def npu_iou(
    boxes1: Tensor,
    boxes2: Tensor,
    mode: str = "ptiou",
    is_normalized: bool = False,
    normalized_scale: float = 100.0,
) -> Tensor:
    """Overlaps of all pairs of boxes, a row for each of the first."""
    scale = normalized_scale if is_normalized else 1.0
    overlap = _iou if mode == "iou" else _ptiou
    return overlap(boxes2 * scale, boxes1 * scale)


npu_ptiou = npu_iou
