"""Residual networks in one small file: ResNet-18, ResNet-50, and a tiny one for tests."""

import torch
from torch import nn


def conv_bn(inputs, outputs, size, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(inputs, width, 3, stride), nn.ReLU(inplace=True), conv_bn(width, width, 3)
        )
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions and a shortcut."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * self.expansion
        self.body = nn.Sequential(
            conv_bn(inputs, width, 1),
            nn.ReLU(inplace=True),
            conv_bn(width, width, 3, stride),
            nn.ReLU(inplace=True),
            conv_bn(width, outputs, 1),
        )
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def shortcut(inputs, outputs, stride):
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return conv_bn(inputs, outputs, 1, stride)


class ResNet(nn.Module):
    def __init__(self, block, depths, num_classes=1000, width=64):
        super().__init__()
        self.stem = nn.Sequential(
            conv_bn(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
        )
        stages, inputs = [], width
        for number, depth in enumerate(depths):
            stage_width = width * 2**number
            for position in range(depth):
                stride = 2 if number and not position else 1
                stages.append(block(inputs, stage_width, stride))
                inputs = stage_width * block.expansion
        self.features = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, num_classes)

    def forward(self, x):
        x = self.features(self.stem(x))
        return self.head(x.mean(dim=(2, 3)))


def resnet18(num_classes=1000):
    return ResNet(Block, (2, 2, 2, 2), num_classes)


def resnet50(num_classes=1000):
    return ResNet(Bottleneck, (3, 4, 6, 3), num_classes)


def resnet_tiny(num_classes=1000):
    return ResNet(Block, (1, 1), num_classes, width=8)


MODELS = {"resnet18": resnet18, "resnet50": resnet50, "resnet_tiny": resnet_tiny}
