"""Overlap of boxes: stacked coordinates, or one after the other."""

from __future__ import annotations

from typing import Any

import torch

from tests.perf.affinity.checks.plain import DTYPES, outcome, random_boxes, stacked_iou
from torchferry.perf.affinity import pairwise_iou


class _Boxes:
    """As detectron2's: the tensor is an attribute."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def check_same_overlaps(target: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    for dtype in DTYPES:
        for counts in ((7, 5), (1, 9), (0, 3), (3, 0)):
            first, second = (random_boxes(count, generator).to(target.type, dtype) for count in counts)
            found = pairwise_iou(first, second)
            assert found.dtype == dtype and torch.equal(found.cpu(), stacked_iou(first, second).cpu())
            assert torch.equal(found.cpu(), pairwise_iou(_Boxes(first), _Boxes(second)).cpu())


def check_same_gradients(target: Any) -> None:
    """To the last bits: a product's backward pass divides, that of a multiplication does not."""
    generator = torch.Generator().manual_seed(1)
    inputs = [random_boxes(count, generator).to(target.type) for count in (6, 4)]
    weights = [torch.randn(6, 4, generator=generator).to(target.type)]
    for one, other in zip(
        outcome(stacked_iou, inputs, weights), outcome(pairwise_iou, inputs, weights), strict=True
    ):
        torch.testing.assert_close(one, other)


def check_boxes_that_are_none(target: Any) -> None:
    """Without extent, beside each other, and slices of a larger tensor."""
    boxes = torch.tensor([[1.0, 1, 1, 1], [0, 0, 2, 2], [2, 0, 4, 2]]).to(target.type)
    assert torch.equal(pairwise_iou(boxes, boxes).cpu(), torch.diag(torch.tensor([0.0, 1, 1])))
    wide = torch.cat((boxes, boxes), dim=1)[:, 2:6]
    assert torch.equal(pairwise_iou(wide, boxes).cpu(), stacked_iou(wide, boxes).cpu())


def check_other_shapes_are_refused(target: Any) -> None:
    for wrong, error in ((torch.zeros(3, 5), ValueError), ([1, 2, 3, 4], TypeError)):
        try:
            pairwise_iou(wrong, torch.zeros(1, 4))
        except error:
            continue
        raise AssertionError(f"{wrong} was taken")
