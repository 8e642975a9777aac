"""Inception V2, the one with batch normalization (Ioffe and Szegedy 2015)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from .classification import class_loss
from .data import CLASSES, labelled_pictures
from .entry import ModelEntry, Origin, trained_with
from .layers import ConvBatchNorm, joined


class _Mixed(nn.Module):
    """Four branches side by side: 1x1, 3x3, two 3x3, and pooling with a projection."""

    def __init__(
        self,
        inputs: int,
        one: int,
        three: tuple[int, int],
        double: tuple[int, int],
        pool: nn.Module,
        last: int,
    ):
        super().__init__()
        self.one = ConvBatchNorm(inputs, one, 1)
        self.three = nn.Sequential(ConvBatchNorm(inputs, three[0], 1), ConvBatchNorm(*three, 3))
        self.twice = nn.Sequential(
            ConvBatchNorm(inputs, double[0], 1),
            ConvBatchNorm(*double, 3),
            ConvBatchNorm(double[1], double[1], 3),
        )
        self.pool = nn.Sequential(pool, ConvBatchNorm(inputs, last, 1))

    def forward(self, value: Tensor) -> Tensor:
        return joined(self.one(value), self.three(value), self.twice(value), self.pool(value))


class _Reduction(nn.Module):
    """Halves the size: 3x3, two 3x3, and plain pooling."""

    def __init__(self, inputs: int, three: tuple[int, int], double: tuple[int, int]):
        super().__init__()
        self.three = nn.Sequential(ConvBatchNorm(inputs, three[0], 1), ConvBatchNorm(*three, 3, stride=2))
        self.twice = nn.Sequential(
            ConvBatchNorm(inputs, double[0], 1),
            ConvBatchNorm(*double, 3),
            ConvBatchNorm(double[1], double[1], 3, stride=2),
        )
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, value: Tensor) -> Tensor:
        return joined(self.three(value), self.twice(value), self.pool(value))


def _average() -> nn.Module:
    return nn.AvgPool2d(3, stride=1, padding=1)


def _maximum() -> nn.Module:
    return nn.MaxPool2d(3, stride=1, padding=1)


class InceptionV2(nn.Module):
    """The published widths, ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            ConvBatchNorm(3, 64, 7, stride=2),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            ConvBatchNorm(64, 64, 1),
            ConvBatchNorm(64, 192, 3),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
        )
        self.mixed = nn.Sequential(
            _Mixed(192, 64, (64, 64), (64, 96), _average(), 32),
            _Mixed(256, 64, (64, 96), (64, 96), _average(), 64),
            _Reduction(320, (128, 160), (64, 96)),
            _Mixed(576, 224, (64, 96), (96, 128), _average(), 128),
            _Mixed(576, 192, (96, 128), (96, 128), _average(), 128),
            _Mixed(576, 160, (128, 160), (128, 160), _average(), 96),
            _Mixed(576, 96, (128, 192), (160, 192), _average(), 96),
            _Reduction(576, (128, 192), (192, 256)),
            _Mixed(1024, 352, (192, 320), (160, 224), _average(), 128),
            _Mixed(1024, 352, (192, 320), (192, 224), _maximum(), 128),
        )
        self.classifier = nn.Linear(1024, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.classifier(torch.mean(self.mixed(self.stem(pictures)), dim=(2, 3)))


ENTRIES = [
    ModelEntry(
        "InceptionV2",
        Origin.OWN,
        "arXiv:1502.03167",
        build=InceptionV2,
        batch=partial(labelled_pictures, 4, 64),
        turns=trained_with(class_loss),
    )
]
