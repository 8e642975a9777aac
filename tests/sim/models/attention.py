"""Classifiers built around an attention or context block: Residual Attention Network, Gather-Excite, DeepMAR."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .classification import class_loss
from .data import CLASSES, labelled_pictures, labels, pictures
from .entry import Batch, ModelEntry, Origin, adam, trained_with
from .layers import ResNetFeatures

_ATTRIBUTES = 35


class _PreActivated(nn.Module):
    """A bottleneck with its normalization before each convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        inner = outputs // 4
        self.first = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True))
        self.convolutions = nn.Sequential(
            nn.Conv2d(inputs, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, outputs, 1, bias=False),
        )
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, value: Tensor) -> Tensor:
        activated = self.first(value)
        kept = value if self.shortcut is None else self.shortcut(activated)
        return self.convolutions(activated) + kept


class _SoftMask(nn.Module):
    """The hourglass of an attention module: down and up again, `depth` times, with a skip at each size."""

    def __init__(self, channels: int, depth: int):
        super().__init__()
        self.down = _PreActivated(channels, channels)
        self.inner = _SoftMask(channels, depth - 1) if depth > 1 else _PreActivated(channels, channels)
        self.skip = _PreActivated(channels, channels) if depth > 1 else None
        self.up = _PreActivated(channels, channels)

    def forward(self, value: Tensor) -> Tensor:
        small = self.down(functional.max_pool2d(value, 3, stride=2, padding=1))
        deep = self.inner(small)
        if self.skip is not None:
            deep = deep + self.skip(small)
        return functional.interpolate(
            self.up(deep), size=value.shape[-2:], mode="bilinear", align_corners=True
        )


class _AttentionModule(nn.Module):
    """A trunk, and a mask between 0 and 1 that says what of it to emphasize."""

    def __init__(self, channels: int, depth: int):
        super().__init__()
        self.first = _PreActivated(channels, channels)
        self.trunk = nn.Sequential(_PreActivated(channels, channels), _PreActivated(channels, channels))
        self.mask = nn.Sequential(
            _SoftMask(channels, depth),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 1, bias=False),
            nn.Sigmoid(),
        )
        self.last = _PreActivated(channels, channels)

    def forward(self, value: Tensor) -> Tensor:
        value = self.first(value)
        return self.last((1 + self.mask(value)) * self.trunk(value))


class ResidualAttention(nn.Sequential):
    """Attention-92 for pictures of 32 x 32."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            _PreActivated(32, 128),
            _AttentionModule(128, 2),
            _PreActivated(128, 256, stride=2),
            *(_AttentionModule(256, 2) for _ in range(2)),
            _PreActivated(256, 512, stride=2),
            *(_AttentionModule(512, 1) for _ in range(3)),
            _PreActivated(512, 1024),
            *(_PreActivated(1024, 1024) for _ in range(2)),
            nn.BatchNorm2d(1024),
            nn.ReLU(inplace=True),
            nn.AvgPool2d(8),
            nn.Flatten(),
            nn.Linear(1024, CLASSES),
        )


def _mixed_pictures() -> Batch:
    """Pictures, what they are mixed with, and how much of each."""
    return {
        **labelled_pictures(2, 32),
        "order": torch.randperm(2),
        "share": torch.distributions.Beta(1.0, 1.0).sample(),
    }


def _mixup_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Cross entropy for pictures mixed in pairs."""
    share, order = batch["share"], batch["order"]
    output = model(share * batch["pictures"] + (1 - share) * batch["pictures"][order])
    own, others = batch["labels"], batch["labels"][order]
    return share * functional.cross_entropy(output, own) + (1 - share) * functional.cross_entropy(
        output, others
    )


class _GatherExcite(nn.Module):
    """Gathers context with strided depthwise convolutions and gives it back as a gate (the learned form)."""

    def __init__(self, channels: int, halvings: int):
        super().__init__()
        self.gather = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(channels, channels, 3, stride=2, padding=1, groups=channels, bias=False),
                    nn.BatchNorm2d(channels),
                )
                for _ in range(halvings)
            )
        )
        self.mix = nn.Sequential(
            nn.Conv2d(channels, channels // 16, 1, bias=False),
            nn.ReLU(),
            nn.Conv2d(channels // 16, channels, 1, bias=False),
        )

    def forward(self, value: Tensor) -> Tensor:
        context = self.mix(self.gather(value))
        return value * torch.sigmoid(functional.interpolate(context, value.shape[-2:], mode="nearest"))


class _WideBlock(nn.Module):
    """A block of a wide residual network with a Gather-Excite gate on its residual."""

    def __init__(self, inputs: int, outputs: int, stride: int, halvings: int):
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True))
        self.residual = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Dropout(0.3),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            _GatherExcite(outputs, halvings),
        )
        same = inputs == outputs
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, value: Tensor) -> Tensor:
        activated = self.first(value)
        kept = value if self.shortcut is None else self.shortcut(activated)
        return self.residual(activated) + kept


class GatherExciteNet(nn.Sequential):
    """A wide residual network, 16 layers deep and 4 times as wide, with Gather-Excite in each block."""

    def __init__(self) -> None:
        widths = (16, 64, 128, 256)
        blocks = []
        for stage in range(3):
            for block in range(2):
                inputs = widths[stage] if block == 0 else widths[stage + 1]
                stride = 2 if stage and block == 0 else 1
                blocks.append(_WideBlock(inputs, widths[stage + 1], stride, halvings=4 - stage))
        super().__init__(
            nn.Conv2d(3, widths[0], 3, padding=1, bias=False),
            *blocks,
            nn.BatchNorm2d(widths[-1]),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(widths[-1], CLASSES),
        )


class DeepMar(nn.Module):
    """ResNet-50 features and one logit for each attribute of a pedestrian."""

    def __init__(self) -> None:
        super().__init__()
        self.features = ResNetFeatures()
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(2048, _ATTRIBUTES))
        # How often each attribute is seen; the rare side of an attribute weighs more.
        self.register_buffer("frequency", torch.linspace(0.05, 0.95, _ATTRIBUTES))

    def forward(self, pictures: Tensor) -> Tensor:
        return self.classifier(functional.adaptive_avg_pool2d(self.features(pictures)[-1], 1).flatten(1))


def _pedestrians() -> Batch:
    return {"pictures": pictures(4, 64, 32), "attributes": labels(4, _ATTRIBUTES, classes=2).float()}


def _attribute_loss(model: DeepMar, batch: Batch) -> Tensor:
    """Binary cross entropy, each attribute weighted by how rare its value is."""
    present = batch["attributes"]
    share = torch.where(present > 0.5, 1 - model.frequency, model.frequency)
    logits = model(batch["pictures"])
    return functional.binary_cross_entropy_with_logits(logits, present, weight=torch.exp(share)) * _ATTRIBUTES


ENTRIES = [
    ModelEntry(
        "3D AttentionNet",
        Origin.OWN,
        "arXiv:1704.06904",
        build=ResidualAttention,
        batch=_mixed_pictures,
        turns=trained_with(_mixup_loss),
        note=Text(
            "The vendor's model of this name is the Residual Attention Network (92, for CIFAR-10): "
            "two-dimensional; with mixup.",
            "厂商同名模型是残差注意力网络（92 层，用于 CIFAR-10），为二维网络；使用 mixup。",
        ),
    ),
    ModelEntry(
        "GENet",
        Origin.OWN,
        "arXiv:1810.12348",
        build=GatherExciteNet,
        batch=partial(labelled_pictures, 4, 32),
        turns=trained_with(class_loss),
        note=Text("Gather-Excite (θ) in WRN-16-4.", "WRN-16-4 中的 Gather-Excite（θ 形式）。"),
    ),
    ModelEntry(
        "DeepMar",
        Origin.OWN,
        "Li, Chen and Huang 2015",
        build=DeepMar,
        batch=_pedestrians,
        turns=trained_with(_attribute_loss),
        optimizer=adam,
        note=Text("Layers of torchvision's ResNet-50.", "使用 torchvision 的 ResNet-50 各层。"),
    ),
]
