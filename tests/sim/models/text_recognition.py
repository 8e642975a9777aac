"""Reading text: FOTS, which also finds it, and LPRNet for licence plates."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .data import labels, pictures
from .entry import Batch, ModelEntry, Origin, adam, trained_with
from .layers import ConvBatchNorm, MergingDecoder, ResNetFeatures, joined
from .text_detection import RotatedBoxHead, rotated_box_loss, rotated_boxes

_SIZE = 64
_BLANK = 0
_ALPHABET = 37
_REGION = (8, 32)
_PLATE_CHARACTERS = 68


class _RegionReader(nn.Module):
    """Convolutions that flatten the height, a bidirectional LSTM, and the characters of each column."""

    def __init__(self, inputs: int):
        super().__init__()
        layers: list[nn.Module] = []
        for width in (64, 128, 256):
            layers += [
                ConvBatchNorm(inputs, width),
                ConvBatchNorm(width, width),
                nn.MaxPool2d((2, 1), (2, 1)),
            ]
            inputs = width
        self.convolutions = nn.Sequential(*layers)
        self.recurrent = nn.LSTM(inputs, 128, bidirectional=True)
        self.characters = nn.Linear(256, _ALPHABET)

    def forward(self, regions: Tensor) -> Tensor:
        """(column, region, character) log probabilities."""
        columns = self.convolutions(regions).squeeze(2).permute(2, 0, 1)
        return self.characters(self.recurrent(columns)[0]).log_softmax(2)


class Fots(nn.Module):
    """Shared features; a head that finds text, and a reader of the regions turned upright."""

    def __init__(self) -> None:
        super().__init__()
        self.features = ResNetFeatures()
        self.decoder = MergingDecoder(self.features.channels)
        self.detector = RotatedBoxHead(32)
        self.reader = _RegionReader(32)

    def forward(self, images: Tensor, regions: Tensor, owner: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shared = self.decoder(self.features(images))
        score, geometry = self.detector(shared)
        return score, geometry, self.reader(upright(shared, regions, owner))


def upright(features: Tensor, regions: Tensor, owner: Tensor) -> Tensor:
    """RoIRotate: cut regions (center x and y, width, height, angle; as parts of the picture) out of the maps."""
    x, y, width, height, angle = regions.unbind(1)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    rows = [
        torch.stack([width * cosine, -height * sine, 2 * x - 1], dim=1),
        torch.stack([width * sine, height * cosine, 2 * y - 1], dim=1),
    ]
    theta = torch.stack(rows, dim=1)
    grid = functional.affine_grid(theta, [len(regions), features.shape[1], *_REGION], align_corners=False)
    return functional.grid_sample(features[owner], grid, mode="bilinear", align_corners=False)


def _spotted_text() -> Batch:
    """Two pictures with three words each; narrow words have fewer columns."""
    words, longest = 6, 8
    place = 0.3 + 0.4 * torch.rand(words, 2)
    extent = torch.stack([0.2 + 0.3 * torch.rand(words), 0.05 + 0.1 * torch.rand(words)], dim=1)
    angle = torch.rand(words, 1) - 0.5
    return {
        **rotated_boxes(2, _SIZE),
        "regions": torch.cat([place, extent, angle], dim=1),
        "owner": torch.arange(words) // 3,
        "columns": torch.randint(20, _REGION[1] + 1, (words,)),
        "characters": labels(words, longest, classes=_ALPHABET - 1) + 1,
        "lengths": torch.randint(3, longest + 1, (words,)),
    }


def _fots_loss(model: Fots, batch: Batch) -> Tensor:
    """Detection and reading count alike."""
    score, geometry, read = model(batch["pictures"], batch["regions"], batch["owner"])
    reading = functional.ctc_loss(
        read, batch["characters"], batch["columns"], batch["lengths"], blank=_BLANK, zero_infinity=True
    )
    return rotated_box_loss(score, geometry, batch) + reading


class _SmallBlock(nn.Sequential):
    """LPRNet's bottleneck with a 3x1 and a 1x3 convolution, and what follows it."""

    def __init__(self, inputs: int, outputs: int):
        inner = outputs // 4
        super().__init__(
            nn.Conv2d(inputs, inner, 1),
            nn.ReLU(),
            nn.Conv2d(inner, inner, (3, 1), padding=(1, 0)),
            nn.ReLU(),
            nn.Conv2d(inner, inner, (1, 3), padding=(0, 1)),
            nn.ReLU(),
            nn.Conv2d(inner, outputs, 1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        )


class LprNet(nn.Module):
    """Convolutions only; pools over the channels, too, and adds the context of four depths."""

    def __init__(self) -> None:
        super().__init__()
        classes = _PLATE_CHARACTERS
        self.stages = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU()),
                nn.Sequential(nn.MaxPool3d((1, 3, 3), stride=(1, 1, 1)), _SmallBlock(64, 128)),
                nn.Sequential(
                    nn.MaxPool3d((1, 3, 3), stride=(2, 1, 2)), _SmallBlock(64, 256), _SmallBlock(256, 256)
                ),
                nn.Sequential(
                    nn.MaxPool3d((1, 3, 3), stride=(4, 1, 2)),
                    nn.Dropout(0.5),
                    nn.Conv2d(64, 256, (1, 4)),
                    nn.BatchNorm2d(256),
                    nn.ReLU(),
                    nn.Dropout(0.5),
                    nn.Conv2d(256, classes, (13, 1)),
                    nn.BatchNorm2d(classes),
                    nn.ReLU(),
                ),
            ]
        )
        self.context = nn.ModuleList(
            [
                nn.AvgPool2d(5, stride=5),
                nn.AvgPool2d(5, stride=5),
                nn.AvgPool2d((4, 10), stride=(4, 2)),
                nn.Identity(),
            ]
        )
        self.container = nn.Conv2d(64 + 128 + 256 + classes, classes, 1)

    def forward(self, plates: Tensor) -> Tensor:
        """(plate, character, column) logits."""
        value, gathered = plates, []
        for stage, pool in zip(self.stages, self.context, strict=True):
            value = stage(value)
            context = pool(value)
            gathered.append(context / context.square().mean())
        return self.container(joined(*gathered)).mean(dim=2)


def _plates() -> Batch:
    """Plates of 24 x 94 with seven or eight characters; their numbers lie end to end."""
    lengths = torch.randint(7, 9, (8,))
    return {
        "plates": pictures(8, 24, 94),
        "lengths": lengths,
        "characters": labels(int(lengths.sum()), classes=_PLATE_CHARACTERS - 1),
    }


def _plate_loss(model: LprNet, batch: Batch) -> Tensor:
    """Connectionist temporal classification; the last character is the blank."""
    read = model(batch["plates"]).permute(2, 0, 1).log_softmax(2)
    columns = torch.full_like(batch["lengths"], read.shape[0])
    return functional.ctc_loss(
        read, batch["characters"], columns, batch["lengths"], blank=_PLATE_CHARACTERS - 1, reduction="mean"
    )


ENTRIES = [
    ModelEntry(
        "FOTS",
        Origin.OWN,
        "arXiv:1801.01671",
        build=Fots,
        batch=_spotted_text,
        turns=trained_with(_fots_loss),
        optimizer=adam,
        note=Text(
            "Layers of torchvision's ResNet-50; with RoIRotate and CTC.",
            "使用 torchvision 的 ResNet-50 各层；含 RoIRotate 与 CTC。",
        ),
    ),
    ModelEntry(
        "LPRNet",
        Origin.OWN,
        "arXiv:1806.10447",
        build=LprNet,
        batch=_plates,
        turns=trained_with(_plate_loss),
        optimizer=adam,
    ),
]
