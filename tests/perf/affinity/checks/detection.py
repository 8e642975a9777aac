"""The detections of one image: filtered, and one box after the other compared with all that were kept; or in blocks."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch import Tensor

from tests.perf.affinity.checks.plain import random_boxes, stacked_iou
from torchferry.perf.affinity import detection, fast_rcnn_inference_single_image

SHAPE = (80, 90)


def plain_detections(
    boxes: Tensor, scores: Tensor, threshold: float, overlap: float, limit: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Boxes, scores, classes and regions, by the book."""
    valid = (torch.isfinite(boxes).all(1) & torch.isfinite(scores).all(1)).nonzero()[:, 0]
    boxes, scores = boxes[valid], scores[valid, :-1]
    boxes = boxes.unflatten(1, (-1, 4)).clone()
    boxes[..., 0::2].clamp_(0, SHAPE[1])
    boxes[..., 1::2].clamp_(0, SHAPE[0])
    region, label = (scores > threshold).nonzero().unbind(1)
    candidates = boxes[region, 0 if boxes.shape[1] == 1 else label]
    values = scores[region, label]
    kept: list[int] = []
    for place in values.sort(descending=True, stable=True).indices.tolist():
        rivals = [other for other in kept if label[other] == label[place]]
        near = stacked_iou(candidates[rivals].float(), candidates[[place]].float())
        if not bool((near > overlap).any()):
            kept.append(place)
    kept = kept[:limit] if limit >= 0 else kept
    return candidates[kept], values[kept], label[kept], valid[region[kept]]


def _image(regions: int, classes: int, is_by_class: bool, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    boxes = random_boxes(regions * (classes if is_by_class else 1), generator).reshape(regions, -1)
    # Few values, so that many scores are equal and their order counts.
    scores = torch.randint(0, 20, (regions, classes + 1), generator=generator) / 20
    return boxes, scores


def _compare(target: Any, boxes: Tensor, scores: Tensor, threshold: float, overlap: float, limit: int) -> int:
    plain = plain_detections(boxes, scores, threshold, overlap, limit)
    found, regions = fast_rcnn_inference_single_image(
        boxes.to(target.type), scores.to(target.type), SHAPE, threshold, overlap, limit
    )
    ours = (found.pred_boxes.tensor, found.scores, found.pred_classes, regions)
    for name, one, other in zip(("boxes", "scores", "classes", "regions"), plain, ours, strict=True):
        assert other.device.type == target.type
        assert torch.equal(one, other.cpu()), name
    return len(found)


def check_same_detections(target: Any) -> None:
    for is_by_class, limit in product((True, False), (-1, 0, 5)):
        for dtype in (torch.float32, torch.float16):
            boxes, scores = _image(30, 3, is_by_class, seed=limit + 2)
            _compare(target, boxes.to(dtype), scores.to(dtype), 0.3, 0.4, limit)


def check_more_candidates_than_one_block(target: Any) -> None:
    before = detection.BLOCK
    detection.BLOCK = 16
    try:
        boxes, scores = _image(40, 3, True, seed=7)
        assert _compare(target, boxes, scores, 0.1, 0.3, -1) > 16
        assert _compare(target, boxes, scores, 0.1, 0.3, 20) == 20
    finally:
        detection.BLOCK = before


def check_a_long_chain_of_overlaps(target: Any) -> None:
    """Each box overlaps its neighbours alone: every second one stays, which takes as many rounds as there are boxes."""
    left = torch.arange(20.0) * 3
    boxes = torch.stack((left, torch.zeros(20), left + 10, torch.full((20,), 10.0)), dim=1)
    scores = torch.stack((torch.linspace(0.9, 0.5, 20), torch.zeros(20)), dim=1)
    assert _compare(target, boxes, scores, 0.1, 0.5, -1) == 10


def check_images_without_detections(target: Any) -> None:
    boxes, scores = _image(10, 3, True, seed=3)
    assert _compare(target, boxes, scores, 1.0, 0.5, -1) == 0
    assert _compare(target, boxes[:0], scores[:0], 0.1, 0.5, 5) == 0


def check_regions_that_are_not_finite_are_left_out(target: Any) -> None:
    boxes, scores = _image(20, 2, True, seed=4)
    boxes[3, 1], scores[5, 0] = float("inf"), float("nan")
    assert _compare(target, boxes, scores, 0.2, 0.5, -1) > 0


def check_gradients_reach_what_was_kept(target: Any) -> None:
    boxes, scores = (tensor.to(target.type).requires_grad_() for tensor in _image(10, 2, True, seed=5))
    found, regions = fast_rcnn_inference_single_image(boxes, scores, SHAPE, 0.3, 0.5, 4)
    found.scores.sum().backward()
    places = scores.grad.nonzero().tolist()
    expected = sorted(
        [int(region), int(label)] for region, label in zip(regions, found.pred_classes, strict=True)
    )
    assert places == expected
