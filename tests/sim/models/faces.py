"""The first two networks of MTCNN: PNet proposes faces, RNet refines them."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from .data import pictures
from .entry import Batch, ModelEntry, Origin, adam, trained_with

_FACE, _BACKGROUND, _PART, _LANDMARK = 1, 0, -1, -2


class PNet(nn.Module):
    """Fully convolutional, for patches of 12 x 12."""

    size = 12

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 10, 3),
            nn.PReLU(10),
            nn.MaxPool2d(2, stride=2, ceil_mode=True),
            nn.Conv2d(10, 16, 3),
            nn.PReLU(16),
            nn.Conv2d(16, 32, 3),
            nn.PReLU(32),
        )
        self.face = nn.Conv2d(32, 2, 1)
        self.box = nn.Conv2d(32, 4, 1)
        self.landmarks = nn.Conv2d(32, 10, 1)

    def forward(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = self.features(patches)
        return self.face(value).flatten(1), self.box(value).flatten(1), self.landmarks(value).flatten(1)


class RNet(nn.Module):
    """For patches of 24 x 24, with a fully connected layer."""

    size = 24

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 28, 3),
            nn.PReLU(28),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            nn.Conv2d(28, 48, 3),
            nn.PReLU(48),
            nn.MaxPool2d(3, stride=2, ceil_mode=True),
            nn.Conv2d(48, 64, 2),
            nn.PReLU(64),
            nn.Flatten(),
            nn.Linear(64 * 3 * 3, 128),
            nn.PReLU(),
        )
        self.face = nn.Linear(128, 2)
        self.box = nn.Linear(128, 4)
        self.landmarks = nn.Linear(128, 10)

    def forward(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = self.features(patches)
        return self.face(value), self.box(value), self.landmarks(value)


def _patches(size: int, count: int = 64) -> Batch:
    """Patches of the four kinds, as MTCNN's training set mixes them."""
    kinds = torch.tensor([_FACE, _BACKGROUND, _BACKGROUND, _BACKGROUND, _PART, _LANDMARK])
    return {
        "patches": pictures(count, size),
        "kind": kinds[torch.randint(0, len(kinds), (count,))],
        "box": 0.2 * torch.randn(count, 4),
        "landmarks": torch.rand(count, 10),
    }


def _mtcnn_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The hardest 70 % of the face decisions, boxes where there is a face or a part, landmarks where known."""
    face, box, landmarks = model(batch["patches"])
    kind = batch["kind"]
    decided = kind >= _BACKGROUND
    each = functional.cross_entropy(face[decided], kind[decided], reduction="none")
    hardest, _ = torch.topk(each, int(0.7 * each.numel()))
    boxed = ((kind == _FACE) | (kind == _PART)).float()
    marked = (kind == _LANDMARK).float()
    return (
        hardest.mean()
        + 0.5 * _masked(box, batch["box"], boxed)
        + 0.5 * _masked(landmarks, batch["landmarks"], marked)
    )


def _masked(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Mean squared error of the rows that the mask picks."""
    errors = ((output - target) ** 2).sum(1)
    return (errors * mask).sum() / mask.sum().clamp(min=1)


def _entry(name: str, network: type[PNet | RNet]) -> ModelEntry:
    return ModelEntry(
        name,
        Origin.OWN,
        "arXiv:1604.02878",
        build=network,
        batch=partial(_patches, network.size),
        turns=trained_with(_mtcnn_loss),
        optimizer=adam,
    )


ENTRIES = [_entry("PNet", PNet), _entry("RNet", RNet)]
