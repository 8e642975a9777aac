"""Overlap of boxes, computed coordinate by coordinate: no tensor with a last dimension of two, nothing strided."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def box_tensor(boxes: Any) -> Tensor:
    """The tensor of boxes (N, 4): they may be one, or hold it as `.tensor`, as detectron2's Boxes do."""
    tensor = boxes if isinstance(boxes, Tensor) else getattr(boxes, "tensor", None)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"boxes must be a tensor, or have one as .tensor; found {type(boxes).__name__}")
    if tensor.dim() != 2 or tensor.shape[1] != 4:
        raise ValueError(f"boxes must be (N, 4): x1, y1, x2, y2; found {tuple(tensor.shape)}")
    return tensor


def pairwise_iou(boxes1: Any, boxes2: Any) -> Tensor:
    """Intersection over union of all pairs (N, M); 0 where two boxes do not meet."""
    left1, top1, right1, bottom1 = _coordinates(box_tensor(boxes1))
    left2, top2, right2, bottom2 = _coordinates(box_tensor(boxes2))
    area1 = (right1 - left1) * (bottom1 - top1)
    area2 = (right2 - left2) * (bottom2 - top2)
    width = (torch.min(right1[:, None], right2) - torch.max(left1[:, None], left2)).clamp(min=0)
    height = (torch.min(bottom1[:, None], bottom2) - torch.max(top1[:, None], top2)).clamp(min=0)
    shared = width * height
    apart = torch.zeros(1, dtype=shared.dtype, device=shared.device)
    return torch.where(shared > 0, shared / (area1[:, None] + area2 - shared), apart)


def _coordinates(boxes: Tensor) -> tuple[Tensor, ...]:
    """The four columns, each contiguous."""
    return boxes.t().contiguous().unbind(0)
