"""The affinity forms inside what else PyTorch does with functions: torch.compile, higher gradients, torch.func."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.perf.affinity.checks.plain import random_boxes, stacked_iou
from torchferry.perf import affinity

IMAGE = torch.randn(2, 6, 3, 3, generator=torch.Generator().manual_seed(0))
BOXES = random_boxes(5, torch.Generator().manual_seed(0))
LABELS = torch.tensor([1, 0, 2])


def cross_entropy_of_int32(scores: Tensor) -> Tensor:
    return affinity.cross_entropy(scores, LABELS.int())


PAIRS: list[Any] = [
    pytest.param(
        lambda x: functional.channel_shuffle(x, 2),
        lambda x: affinity.channel_shuffle(x, 2),
        [IMAGE],
        id="shuffle",
    ),
    pytest.param(
        lambda x, y: functional.channel_shuffle(torch.cat((x, y), 1), 3).chunk(2, 1),
        affinity.ChannelShuffle(12, 3),
        [IMAGE, IMAGE + 1],
        id="joined shuffle",
    ),
    pytest.param(stacked_iou, affinity.pairwise_iou, [BOXES, BOXES + 1], id="overlaps"),
    pytest.param(
        lambda x: functional.cross_entropy(x, LABELS),
        cross_entropy_of_int32,
        [torch.eye(3)],
        id="cross entropy",
    ),
]


def gradients(function: Callable[..., Any], inputs: Sequence[Tensor], order: int = 1) -> list[Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    results = function(*leaves)
    total = sum((result**2).sum() for result in (results if isinstance(results, tuple) else (results,)))
    found: tuple[Tensor, ...] = torch.autograd.grad(total, leaves, create_graph=order > 1)  # type: ignore[arg-type]
    for _ in range(order - 1):
        found = torch.autograd.grad(sum((item**2).sum() for item in found), leaves)  # type: ignore[arg-type]
    return [item.detach() for item in found]


@pytest.mark.parametrize(("plain", "ours", "inputs"), PAIRS)
def test_second_gradients(plain: Any, ours: Any, inputs: list[Tensor]) -> None:
    for one, other in zip(gradients(plain, inputs, 2), gradients(ours, inputs, 2), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("plain", "ours", "inputs"), PAIRS)
def test_compiled_into_one_graph(plain: Any, ours: Any, inputs: list[Tensor]) -> None:
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    for one, other in zip(gradients(plain, inputs), gradients(compiled, inputs), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("plain", "ours", "inputs"), PAIRS)
def test_mapped_over_many(plain: Any, ours: Any, inputs: list[Tensor]) -> None:
    many = [torch.stack((tensor, tensor * 2)) for tensor in inputs]
    expected, found = torch.func.vmap(plain)(*many), torch.func.vmap(ours)(*many)
    for one, other in zip(
        *((item if isinstance(item, tuple) else (item,)) for item in (expected, found)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_detectron2s_own_records_are_the_answer_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    structures = SimpleNamespace(
        Instances=lambda size: SimpleNamespace(image_size=size),
        Boxes=lambda tensor: SimpleNamespace(tensor=tensor),
    )
    boxes, scores = BOXES[:1], torch.tensor([[0.9, 0.1]])
    ours, _ = affinity.fast_rcnn_inference_single_image(boxes, scores, (90, 90), 0.5, 0.5, 10)
    monkeypatch.setitem(sys.modules, "detectron2.structures", structures)  # type: ignore[arg-type]
    theirs, _ = affinity.fast_rcnn_inference_single_image(boxes, scores, (90, 90), 0.5, 0.5, 10)
    assert type(theirs) is SimpleNamespace and type(ours) is not SimpleNamespace
    assert theirs.image_size == ours.image_size == (90, 90)
    for one, other in (
        (ours.pred_boxes.tensor, theirs.pred_boxes.tensor),
        (ours.scores, theirs.scores),
        (ours.pred_classes, theirs.pred_classes),
    ):
        assert torch.equal(one, other)
