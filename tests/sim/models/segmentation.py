"""Segmentation: FCN, U-Net, nested U-Net for volumes, DeepLabV3+."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .data import CLASSES, labels, pictures
from .entry import Batch, ModelEntry, Origin, trained_with
from .layers import ConvBatchNorm, joined
from .losses import decaying_sum, dice_loss
from .vision_libraries import timm, torchvision

_IGNORED = 255


def _soft_dice_and_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss of both U-Nets."""
    one_hot = functional.one_hot(targets, logits.shape[1]).movedim(-1, 1).float()
    return functional.cross_entropy(logits, targets) + dice_loss(logits.softmax(1), one_hot)


def _with_border(count: int, size: int) -> Batch:
    """Pictures and classes for each pixel; some pixels are to be ignored."""
    targets = labels(count, size, size)
    targets[torch.rand(count, size, size) < 0.05] = _IGNORED
    return {"pictures": pictures(count, size), "targets": targets}


def _fcn_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The main head, and the auxiliary one at half the weight."""
    outputs = model(batch["pictures"])
    main, auxiliary = (
        functional.cross_entropy(outputs[head], batch["targets"], ignore_index=_IGNORED)
        for head in ("out", "aux")
    )
    return main + 0.5 * auxiliary


class _DoubleConvolution(nn.Sequential):
    def __init__(self, inputs: int, outputs: int):
        super().__init__(ConvBatchNorm(inputs, outputs), ConvBatchNorm(outputs, outputs))


class UNet(nn.Module):
    """Five sizes, 64 to 1024 channels, transposed convolutions on the way up."""

    widths = (64, 128, 256, 512, 1024)

    def __init__(self, classes: int):
        super().__init__()
        pairs = list(zip(self.widths[:-1], self.widths[1:], strict=True))
        self.first = _DoubleConvolution(3, self.widths[0])
        self.down = nn.ModuleList(_DoubleConvolution(*pair) for pair in pairs)
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(deep, shallow, 2, stride=2) for shallow, deep in reversed(pairs)
        )
        self.merge = nn.ModuleList(_DoubleConvolution(deep, shallow) for shallow, deep in reversed(pairs))
        self.last = nn.Conv2d(self.widths[0], classes, 1)

    def forward(self, value: Tensor) -> Tensor:
        value = self.first(value)
        skips = []
        for down in self.down:
            skips.append(value)
            value = down(functional.max_pool2d(value, 2))
        for up, merge in zip(self.up, self.merge, strict=True):
            value = merge(joined(skips.pop(), up(value)))
        return self.last(value)


def _two_classes() -> Batch:
    return {"pictures": pictures(1, 64), "targets": labels(1, 64, 64, classes=2)}


def _unet_loss(model: nn.Module, batch: Batch) -> Tensor:
    return _soft_dice_and_entropy(model(batch["pictures"]), batch["targets"])


class _VolumeNode(nn.Sequential):
    """A node of the nested U-Net: two convolutions with instance normalization."""

    def __init__(self, inputs: int, outputs: int):
        layers: list[nn.Module] = []
        for source in (inputs, outputs):
            layers += [
                nn.Conv3d(source, outputs, 3, padding=1),
                nn.InstanceNorm3d(outputs, affine=True),
                nn.LeakyReLU(0.01, inplace=True),
            ]
        super().__init__(*layers)


class NestedUNet3d(nn.Module):
    """U-Net++ for volumes: every size has a row of nodes, each fed by all before it and by the row below."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 32, 64, 128), classes: int = 3):
        super().__init__()
        self.rows = len(widths)
        self.nodes = nn.ModuleDict()
        self.ups = nn.ModuleDict()
        for row, width in enumerate(widths):
            self.nodes[self._key(row, 0)] = _VolumeNode(widths[row - 1] if row else 1, width)
            for column in range(1, self.rows - row):
                key = self._key(row, column)
                self.ups[key] = nn.ConvTranspose3d(widths[row + 1], width, 2, stride=2, bias=False)
                self.nodes[key] = _VolumeNode(width * (column + 1), width)
        self.heads = nn.ModuleList(nn.Conv3d(widths[0], classes, 1) for _ in range(self.rows - 1))

    def forward(self, volume: Tensor) -> list[Tensor]:
        """Logits of every node of the top row, for deep supervision."""
        grid: dict[tuple[int, int], Tensor] = {}
        for row in range(self.rows):
            source = functional.max_pool3d(grid[row - 1, 0], 2) if row else volume
            grid[row, 0] = self.nodes[self._key(row, 0)](source)
            for column in range(1, row + 1):
                above = row - column
                key = self._key(above, column)
                raised = self.ups[key](grid[above + 1, column - 1])
                before = [grid[above, earlier] for earlier in range(column)]
                grid[above, column] = self.nodes[key](joined(*before, raised))
        return [head(grid[0, column]) for column, head in enumerate(self.heads, start=1)]

    @staticmethod
    def _key(row: int, column: int) -> str:
        return f"{row}_{column}"


def _volumes() -> Batch:
    return {"volumes": torch.randn(1, 1, 16, 16, 32), "targets": labels(1, 16, 16, 32, classes=3)}


def _deep_supervision_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Every head counts, the deepest most."""
    outputs = model(batch["volumes"])
    losses = [_soft_dice_and_entropy(output, batch["targets"]) for output in outputs]
    return decaying_sum(losses, 0.5)


class _SeparableAtrous(nn.Sequential):
    """A dilated depthwise convolution and a pointwise one."""

    def __init__(self, inputs: int, outputs: int, dilation: int):
        super().__init__(
            nn.Conv2d(inputs, inputs, 3, padding=dilation, dilation=dilation, groups=inputs, bias=False),
            nn.BatchNorm2d(inputs),
            nn.ReLU(inplace=True),
            ConvBatchNorm(inputs, outputs, 1),
        )


class _Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: several dilations and the whole picture, side by side."""

    def __init__(self, inputs: int, width: int = 256):
        super().__init__()
        self.branches = nn.ModuleList(
            [
                ConvBatchNorm(inputs, width, 1),
                *(_SeparableAtrous(inputs, width, rate) for rate in (6, 12, 18)),
            ]
        )
        self.whole = nn.Sequential(nn.AdaptiveAvgPool2d(1), ConvBatchNorm(inputs, width, 1))
        self.project = nn.Sequential(ConvBatchNorm(5 * width, width, 1), nn.Dropout(0.5))

    def forward(self, value: Tensor) -> Tensor:
        whole = functional.interpolate(
            self.whole(value), value.shape[-2:], mode="bilinear", align_corners=True
        )
        return self.project(joined(*(branch(value) for branch in self.branches), whole))


class DeepLabV3Plus(nn.Module):
    """An aligned Xception at stride 16, the pyramid, and a decoder that adds stride 4 features."""

    def __init__(self) -> None:
        super().__init__()
        self.features = timm.create_model(
            "xception65", features_only=True, output_stride=16, out_indices=(1, 4)
        )
        low, high = self.features.feature_info.channels()
        self.pyramid = _Pyramid(high)
        self.low = ConvBatchNorm(low, 48, 1)
        self.decoder = nn.Sequential(
            ConvBatchNorm(256 + 48, 256), nn.Dropout(0.5), ConvBatchNorm(256, 256), nn.Dropout(0.1)
        )
        self.classifier = nn.Conv2d(256, CLASSES, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        low, high = self.features(pictures)
        raised = functional.interpolate(
            self.pyramid(high), low.shape[-2:], mode="bilinear", align_corners=True
        )
        logits = self.classifier(self.decoder(joined(raised, self.low(low))))
        return functional.interpolate(logits, pictures.shape[-2:], mode="bilinear", align_corners=True)


def _deeplab_loss(model: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(model(batch["pictures"]), batch["targets"], ignore_index=_IGNORED)


ENTRIES = [
    ModelEntry(
        "FCN",
        Origin.TORCHVISION,
        "fcn_resnet50",
        build=partial(
            torchvision.models.segmentation.fcn_resnet50,
            num_classes=CLASSES,
            aux_loss=True,
            weights_backbone=None,
        ),
        batch=partial(_with_border, 2, 48),
        turns=trained_with(_fcn_loss),
    ),
    ModelEntry(
        "U-Net",
        Origin.OWN,
        "arXiv:1505.04597",
        build=partial(UNet, classes=2),
        batch=_two_classes,
        turns=trained_with(_unet_loss),
    ),
    ModelEntry(
        "3D Nested_UNet",
        Origin.OWN,
        "arXiv:1912.05074",
        build=NestedUNet3d,
        batch=_volumes,
        turns=trained_with(_deep_supervision_loss),
        note=Text(
            "Width 8 to 128 instead of 32 to 512; volumes of 16 x 16 x 32.",
            "宽度为 8–128（原为 32–512）；体数据为 16 x 16 x 32。",
        ),
    ),
    ModelEntry(
        "DeeplabV3+(Xception-JFT)",
        Origin.TIMM,
        "xception65",
        build=DeepLabV3Plus,
        batch=partial(_with_border, 2, 64),
        turns=trained_with(_deeplab_loss),
        note=Text(
            "timm's backbone; pyramid and decoder are our own.",
            "骨干网络来自 timm，金字塔与解码器为自有实现。",
        ),
    ),
]
