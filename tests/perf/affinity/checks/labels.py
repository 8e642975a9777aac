"""Cross entropy with labels in int64 and in int32."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch.nn import functional

from tests.perf.affinity.checks.plain import DTYPES, outcome, same
from torchferry.perf.affinity import CrossEntropyLoss, cross_entropy

LABELS = torch.tensor([0, 3, 1, -100, 3, 2])


def check_same_loss_for_all_arguments(target: Any) -> None:
    weights = (None, torch.tensor([1.0, 2.0, 0.5, 3.0]).to(target.type))
    for weight, ignored, reduction, smoothing in product(
        weights, (-100, 3), ("mean", "sum", "none"), (0.0, 0.1)
    ):
        scores = torch.randn(6, 4).to(target.type)
        labels = torch.where(LABELS == -100, torch.tensor(ignored), LABELS).to(target.type)
        shape = (6,) if reduction == "none" else ()
        ones = [torch.ones(shape).to(target.type)]
        settings = {
            "weight": weight,
            "ignore_index": ignored,
            "reduction": reduction,
            "label_smoothing": smoothing,
        }
        plain = outcome(lambda x, y=labels, s=settings: functional.cross_entropy(x, y, **s), [scores], ones)
        for dtype in (torch.int32, torch.int16, torch.uint8, torch.int64):
            if dtype is torch.uint8 and ignored < 0:
                continue
            given = labels.to(dtype)
            same(plain, outcome(lambda x, y=given, s=settings: cross_entropy(x, y, **s), [scores], ones))
            loss = CrossEntropyLoss(**settings)
            same(plain, outcome(lambda x, y=given, f=loss: f(x, y), [scores], ones))


def check_images_and_half_precision(target: Any) -> None:
    labels = torch.randint(4, (2, 3, 5)).to(target.type)
    ones = [torch.ones(()).to(target.type)]
    for dtype in DTYPES:
        scores = torch.randn(2, 4, 3, 5).to(target.type, dtype)
        plain = outcome(lambda x: functional.cross_entropy(x, labels), [scores], ones)
        same(plain, outcome(lambda x: cross_entropy(x, labels.int()), [scores], ones))
        with torch.autocast(target.type, dtype=torch.bfloat16):
            plain = outcome(lambda x: functional.cross_entropy(x, labels), [scores], ones)
            same(plain, outcome(lambda x: cross_entropy(x, labels.int()), [scores], ones))


def check_class_probabilities(target: Any) -> None:
    scores, goal = torch.randn(6, 4).to(target.type), torch.rand(6, 4).softmax(1).to(target.type)
    ones = [torch.ones(()).to(target.type)]
    plain = outcome(lambda x, y: functional.cross_entropy(x, y, label_smoothing=0.1), [scores, goal], ones)
    same(plain, outcome(lambda x, y: cross_entropy(x, y, label_smoothing=0.1), [scores, goal], ones))
