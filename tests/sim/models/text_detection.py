"""Finding text in scenes: EAST, Advanced EAST, PSENet."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .data import blobs, pictures
from .entry import Batch, ModelEntry, Origin, adam, trained_with
from .layers import ConvBatchNorm, MergingDecoder, ResNetFeatures, Vgg16Features, joined
from .losses import dice_loss

_SIZE = 64
_STRIDE = 4
_KERNELS = 7


class RotatedBoxHead(nn.Module):
    """For each pixel: is it text, how far are the four sides of its box, and how is the box turned."""

    def __init__(self, inputs: int, reach: float = 512.0):
        super().__init__()
        self.reach = reach
        self.score = nn.Conv2d(inputs, 1, 1)
        self.sides = nn.Conv2d(inputs, 4, 1)
        self.angle = nn.Conv2d(inputs, 1, 1)

    def forward(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Score, and geometry: distances to top, right, bottom and left, then the angle."""
        sides = torch.sigmoid(self.sides(value)) * self.reach
        angle = (torch.sigmoid(self.angle(value)) - 0.5) * math.pi
        return torch.sigmoid(self.score(value)), joined(sides, angle)


class East(nn.Module):
    """VGG-16, merged features, rotated boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.features = Vgg16Features()
        self.decoder = MergingDecoder(self.features.channels)
        self.head = RotatedBoxHead(32)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return self.head(self.decoder(self.features(images)))


def rotated_boxes(count: int, size: int) -> Batch:
    """Pictures with the maps that EAST learns: score, geometry, and what is too hard to count."""
    small = size // _STRIDE
    score = blobs(count, small, small)
    return {
        "pictures": pictures(count, size),
        "score": score,
        "geometry": joined(
            1 + size * torch.rand(count, 4, small, small), torch.rand(count, 1, small, small) - 0.5
        ),
        "ignored": (torch.rand(count, 1, small, small) < 0.05).float(),
    }


def rotated_box_loss(score: Tensor, geometry: Tensor, batch: Batch) -> Tensor:
    """Dice for the score; overlap of the boxes and difference of the angles where there is text."""
    counted = 1 - batch["ignored"]
    text = batch["score"] * counted
    classification = dice_loss(score * counted, text, smooth=1e-5)
    top, right, bottom, left, angle = geometry.split(1, dim=1)
    true_top, true_right, true_bottom, true_left, true_angle = batch["geometry"].split(1, dim=1)
    height = torch.min(top, true_top) + torch.min(bottom, true_bottom)
    width = torch.min(right, true_right) + torch.min(left, true_left)
    overlap = height * width
    union = (top + bottom) * (right + left) + (true_top + true_bottom) * (true_right + true_left) - overlap
    box = -torch.log((overlap + 1) / (union + 1))
    turn = 1 - torch.cos(angle - true_angle)
    return classification + ((box + 10 * turn) * text).sum() / text.sum().clamp(min=1)


def _east_loss(model: East, batch: Batch) -> Tensor:
    return rotated_box_loss(*model(batch["pictures"]), batch)


class AdvancedEast(nn.Module):
    """EAST's trunk; each pixel says whether it is text, whether it is at an end, and where the corners are."""

    def __init__(self) -> None:
        super().__init__()
        self.features = Vgg16Features()
        self.decoder = MergingDecoder(self.features.channels)
        self.inside = nn.Conv2d(32, 1, 1)
        self.end = nn.Conv2d(32, 2, 1)
        self.corners = nn.Conv2d(32, 4, 1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = self.decoder(self.features(images))
        return self.inside(value), self.end(value), self.corners(value)


def _ends() -> Batch:
    small = _SIZE // _STRIDE
    inside = blobs(2, small, small)
    at_end = inside * (torch.rand(2, 1, small, small) < 0.4).float()
    tail = (torch.rand(2, 1, small, small) < 0.5).float() * at_end
    return {
        "pictures": pictures(2, _SIZE),
        "inside": inside,
        "end": joined(at_end, tail),
        "corners": 16 * torch.randn(2, 4, small, small),
    }


def _advanced_east_loss(model: AdvancedEast, batch: Batch) -> Tensor:
    """Balanced entropies for the two decisions, and a smooth L1 for corners, measured in side lengths."""
    inside, end, corners = model(batch["pictures"])
    text, at_end = batch["inside"], batch["end"][:, :1]
    side = batch["corners"].unflatten(1, (2, 2)).diff(dim=1).square().sum((1, 2), keepdim=False).sqrt()
    errors = functional.smooth_l1_loss(corners, batch["corners"], reduction="none").sum(1) / (4 * side).clamp(
        min=1e-3
    )
    corner_loss = (errors * at_end[:, 0]).sum() / at_end.sum().clamp(min=1)
    return (
        4 * _balanced_entropy(inside, text, torch.ones_like(text))
        + _balanced_entropy(end[:, :1], at_end, text)
        + _balanced_entropy(end[:, 1:], batch["end"][:, 1:], at_end)
        + corner_loss
    )


def _balanced_entropy(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Binary cross entropy within a mask; the rarer side weighs as much as the other."""
    count = mask.sum().clamp(min=1)
    positive_weight = 1 - (targets * mask).sum() / count
    weights = targets * positive_weight + (1 - targets) * (1 - positive_weight)
    return (
        functional.binary_cross_entropy_with_logits(logits, targets, weight=weights, reduction="none") * mask
    ).sum() / count


class PseNet(nn.Module):
    """ResNet-50, a feature pyramid, and the text at several shrunk sizes."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.features = ResNetFeatures()
        self.lateral = nn.ModuleList(ConvBatchNorm(channels, width, 1) for channels in self.features.channels)
        self.smooth = nn.ModuleList(ConvBatchNorm(width, width) for _ in range(3))
        self.head = nn.Sequential(ConvBatchNorm(4 * width, width), nn.Conv2d(width, _KERNELS, 1))

    def forward(self, images: Tensor) -> Tensor:
        levels = [lateral(value) for lateral, value in zip(self.lateral, self.features(images), strict=True)]
        for level in (2, 1, 0):
            levels[level] = self.smooth[level](
                self._resized(levels[level + 1], levels[level]) + levels[level]
            )
        pyramid = joined(*(self._resized(value, levels[0]) for value in levels))
        return self._resized(self.head(pyramid), images)

    @staticmethod
    def _resized(value: Tensor, like: Tensor) -> Tensor:
        return functional.interpolate(value, size=like.shape[-2:], mode="bilinear", align_corners=False)


def _kernels() -> Batch:
    """The text, its shrunk kernels, and the pixels that count."""
    height = functional.interpolate(torch.rand(2, 1, 8, 8), (_SIZE, _SIZE), mode="bicubic")
    levels = torch.linspace(0.45, 0.8, _KERNELS).view(1, _KERNELS, 1, 1)
    return {
        "pictures": pictures(2, _SIZE),
        "kernels": (height > levels).float(),
        "counted": (torch.rand(2, _SIZE, _SIZE) > 0.05).float(),
    }


def _psenet_loss(model: PseNet, batch: Batch) -> Tensor:
    """Dice for the text over its hardest background, and for each kernel within the text."""
    output = model(batch["pictures"])
    text, true_text = output[:, 0], batch["kernels"][:, 0]
    hard = torch.stack(
        [_hard_pixels(*image) for image in zip(text.detach(), true_text, batch["counted"], strict=True)]
    )
    within = (torch.sigmoid(text.detach()) > 0.5).float() * batch["counted"]
    kernels = torch.stack(
        [
            _picture_dice(output[:, kernel], batch["kernels"][:, kernel], within)
            for kernel in range(1, _KERNELS)
        ]
    )
    return 0.7 * _picture_dice(text, true_text, hard) + 0.3 * kernels.mean()


def _hard_pixels(logits: Tensor, text: Tensor, counted: Tensor) -> Tensor:
    """All text, and three times as many background pixels: those that look most like text."""
    positive = int(((text > 0.5) & (counted > 0.5)).sum().item())
    background = logits[text <= 0.5]
    wanted = min(3 * positive, background.numel())
    if wanted == 0:
        return counted
    threshold = background.sort(descending=True).values[wanted - 1]
    return (((logits >= threshold) | (text > 0.5)) & (counted > 0.5)).float()


def _picture_dice(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """1 - Dice coefficient of each picture within a mask, averaged; squares in the denominator."""
    probabilities = (torch.sigmoid(logits) * mask).flatten(1)
    targets = (targets * mask).flatten(1)
    overlap = (probabilities * targets).sum(1)
    total = probabilities.square().sum(1) + targets.square().sum(1) + 0.002
    return (1 - 2 * overlap / total).mean()


def _boxes() -> Batch:
    return rotated_boxes(2, _SIZE)


ENTRIES = [
    ModelEntry(
        "EAST",
        Origin.OWN,
        "arXiv:1704.03155",
        build=East,
        batch=_boxes,
        turns=trained_with(_east_loss),
        optimizer=adam,
        note=Text("Layers of torchvision's VGG-16.", "使用 torchvision 的 VGG-16 各层。"),
    ),
    ModelEntry(
        "Advanced East",
        Origin.OWN,
        "huoyijie/AdvancedEAST",
        build=AdvancedEast,
        batch=_ends,
        turns=trained_with(_advanced_east_loss),
        optimizer=adam,
        note=Text("Layers of torchvision's VGG-16.", "使用 torchvision 的 VGG-16 各层。"),
    ),
    ModelEntry(
        "PSENet",
        Origin.OWN,
        "arXiv:1903.12473",
        build=PseNet,
        batch=_kernels,
        turns=trained_with(_psenet_loss),
        note=Text("Layers of torchvision's ResNet-50.", "使用 torchvision 的 ResNet-50 各层。"),
    ),
]
