"""Blocks that several models share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .vision_libraries import torchvision


class ConvBatchNorm(nn.Sequential):
    """Convolution, batch normalization and ReLU; the padding keeps the size when the stride is 1."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, padding: int | None = None
    ):
        padding = kernel // 2 if padding is None else padding
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class ResNetFeatures(nn.Module):
    """The four stages of a ResNet-50, at strides 4, 8, 16 and 32."""

    channels = (256, 512, 1024, 2048)

    def __init__(self) -> None:
        super().__init__()
        resnet = torchvision.models.resnet50()
        self.stem = nn.Sequential(resnet.conv1, resnet.bn1, resnet.relu, resnet.maxpool)
        self.stages = nn.ModuleList([resnet.layer1, resnet.layer2, resnet.layer3, resnet.layer4])

    def forward(self, images: Tensor) -> list[Tensor]:
        features = [self.stem(images)]
        for stage in self.stages:
            features.append(stage(features[-1]))
        return features[1:]


class Vgg16Features(nn.Module):
    """The last four stages of a VGG-16 with batch normalization, each after its pooling: strides 4 to 32."""

    channels = (128, 256, 512, 512)

    def __init__(self) -> None:
        super().__init__()
        vgg = torchvision.models.vgg
        self.layers = vgg.make_layers(vgg.cfgs["D"], batch_norm=True)

    def forward(self, images: Tensor) -> list[Tensor]:
        features, value = [], images
        for layer in self.layers:
            value = layer(value)
            if isinstance(layer, nn.MaxPool2d):
                features.append(value)
        return features[1:]


class MergingDecoder(nn.Module):
    """EAST's way back from deep to shallow features: upsample, join, 1x1 convolution, 3x3 convolution."""

    def __init__(self, channels: tuple[int, ...], widths: tuple[int, ...] = (128, 64, 32)):
        super().__init__()
        stages, inputs = [], channels[-1]
        for shallow, width in zip(reversed(channels[:-1]), widths, strict=True):
            stages.append(
                nn.Sequential(ConvBatchNorm(inputs + shallow, width, 1), ConvBatchNorm(width, width, 3))
            )
            inputs = width
        self.stages = nn.ModuleList(stages)
        self.last = ConvBatchNorm(inputs, inputs, 3)

    def forward(self, features: list[Tensor]) -> Tensor:
        value = features[-1]
        for stage, shallow in zip(self.stages, reversed(features[:-1]), strict=True):
            value = functional.interpolate(
                value, size=shallow.shape[-2:], mode="bilinear", align_corners=False
            )
            value = stage(joined(value, shallow))
        return self.last(value)


def joined(*values: Tensor) -> Tensor:
    """Feature maps one after the other along the channels."""
    return torch.cat(values, dim=1)
