"""The detections of one image, by operators whose shapes depend on the numbers of regions and classes alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Overlap of boxes, computed coordinate by coordinate: no tensor with a last dimension of two, nothing
# strided.


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
    return boxes.t().contiguous().unbind(0)


BLOCK = 512  # candidates that are compared with each other at once
_NEVER = float("-inf")  # the score of what is no candidate


@dataclass(frozen=True)
class Boxes:
    """Boxes (N, 4), held as detectron2 holds them."""

    tensor: Tensor

    def __len__(self) -> int:
        return int(self.tensor.shape[0])


@dataclass(frozen=True)
class Detections:
    """What was found in an image, under the names that detectron2's Instances have; used where that is not loaded."""

    image_size: tuple[int, int]
    pred_boxes: Boxes
    scores: Tensor
    pred_classes: Tensor

    def __len__(self) -> int:
        return int(self.scores.shape[0])


class _CandidateBoxes(NamedTuple):
    """Boxes of one class each, the best first; those with a score of _NEVER are none."""

    boxes: Tensor
    scores: Tensor
    classes: Tensor
    regions: Tensor


def fast_rcnn_inference_single_image(
    boxes: Any,
    scores: Tensor,
    image_shape: tuple[int, int],
    score_thresh: float,
    nms_thresh: float,
    topk_per_image: int,
) -> tuple[Any, Tensor]:
    """Boxes above a score, less those that overlap a better one of their class, and the regions they come from.

    `boxes` is (R, 4) or (R, classes * 4), `scores` (R, classes + 1) with the background last, `image_shape` height and
    width; `topk_per_image` below 0 means all. As detectron2's function of this name, whose Instances are the answer if
    detectron2 is loaded.
    """
    candidates = _candidates(boxes, scores, image_shape, score_thresh)
    limit = topk_per_image if topk_per_image >= 0 else len(candidates.scores)
    with torch.no_grad():
        kept = _best_apart(candidates, nms_thresh, limit)
    found = _CandidateBoxes(*(column.index_select(0, kept) for column in candidates))
    structures = sys.modules.get("detectron2.structures")
    if structures is None:
        return Detections(image_shape, Boxes(found.boxes), found.scores, found.classes), found.regions
    result = structures.Instances(image_shape)
    result.pred_boxes = structures.Boxes(found.boxes)
    result.scores = found.scores
    result.pred_classes = found.classes
    return result, found.regions


def _candidates(
    boxes: Any, scores: Tensor, image_shape: tuple[int, int], score_thresh: float
) -> _CandidateBoxes:
    tensor: Tensor = boxes if isinstance(boxes, Tensor) else boxes.tensor
    regions, classes = scores.shape[0], scores.shape[1] - 1
    if tensor.shape not in {(regions, 4), (regions, classes * 4)}:
        raise ValueError(
            f"for scores {tuple(scores.shape)}, boxes must be ({regions}, 4) or ({regions}, {classes * 4}); "
            f"found {tuple(tensor.shape)}"
        )
    valid = torch.isfinite(tensor).all(dim=1) & torch.isfinite(scores).all(dim=1)
    scores = scores[:, :-1]
    wanted = (scores > score_thresh) & valid[:, None]
    ranks = scores.detach().masked_fill(~wanted, _NEVER).flatten()
    ranks, order = torch.sort(ranks, descending=True, stable=True)
    region = torch.div(order, max(classes, 1), rounding_mode="floor")
    label = order - region * classes
    height, width = image_shape
    left, top, right, bottom = tensor.reshape(-1, 4).unbind(1)
    inside = (left.clamp(0, width), top.clamp(0, height), right.clamp(0, width), bottom.clamp(0, height))
    clipped = torch.stack(inside, dim=1)
    picked = clipped.index_select(0, region if tensor.shape[1] == 4 else order)
    ordered = scores.flatten().index_select(0, order)
    return _CandidateBoxes(picked, torch.where(ranks == _NEVER, ranks, ordered), label, region)


def _best_apart(candidates: _CandidateBoxes, threshold: float, limit: int) -> Tensor:
    """The places of candidates that overlap no better one of their class, at most `limit`.

    Taken in blocks, because the best come first: it ends when there are enough, or when no candidates are left.
    """
    boxes, classes = candidates.boxes.float(), candidates.classes
    total = len(classes)
    keep = torch.zeros(0, dtype=torch.bool, device=boxes.device)
    for start in range(0, total if limit else 0, BLOCK):
        end = min(start + BLOCK, total)
        near = pairwise_iou(boxes[:end], boxes[start:end]) > threshold
        suppresses = near & (classes[:end, None] == classes[start:end])
        alive = candidates.scores[start:end] > _NEVER
        alive = alive & ~(suppresses[:start] & keep[:, None]).any(0)
        keep = torch.cat((keep, _settled(alive, suppresses[start:].triu(1))))
        if candidates.scores[end - 1] == _NEVER or keep.sum() >= limit:
            break
    return keep.nonzero()[:, 0][:limit]


def _settled(alive: Tensor, suppresses: Tensor) -> Tensor:
    """Who is left, if whoever is left suppresses those after it.

    Everyone's fate hangs on those before it alone. So each round settles at least one more, and a round that changes
    nothing is the last; as a rule there are as many as boxes that overlap in a chain.
    """
    keep = alive
    while True:
        left = alive & ~(suppresses & keep[:, None]).any(0)
        if torch.equal(left, keep):
            return keep
        keep = left
