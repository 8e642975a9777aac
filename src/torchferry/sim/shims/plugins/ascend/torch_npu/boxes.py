"""Overlaps of boxes and what detectors do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

_EPSILON = 0.001  # what the card adds so as not to divide by zero


def npu_iou(bboxes: Tensor, gtboxes: Tensor, mode: int = 0) -> Tensor:
    """Intersection over union (mode 1: over the truth's area) of all pairs, a row for each truth, in float16."""
    shared, other = _areas(bboxes, gtboxes, mode)
    return ((shared + _EPSILON) / (other + _EPSILON)).half()


def npu_ptiou(bboxes: Tensor, gtboxes: Tensor, mode: int = 0) -> Tensor:
    """As npu_iou, with nothing added to the intersection: boxes apart give zero."""
    shared, other = _areas(bboxes, gtboxes, mode)
    return (shared / (other + _EPSILON)).half()


def _areas(bboxes: Tensor, gtboxes: Tensor, mode: int) -> tuple[Tensor, Tensor]:
    """Each pair's intersection, and what it is divided by; boxes are x1, y1, x2, y2."""
    boxes, truths = bboxes.float().unsqueeze(0), gtboxes.float().unsqueeze(1)
    corner = torch.maximum(boxes[..., :2], truths[..., :2])
    opposite = torch.minimum(boxes[..., 2:], truths[..., 2:])
    shared = (opposite - corner).clamp(min=0).prod(dim=-1)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)
    truth = (truths[..., 2:] - truths[..., :2]).prod(dim=-1)
    return shared, truth.expand_as(shared) if mode == 1 else area + truth - shared


OPERATORS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (npu_iou, npu_ptiou)
}
