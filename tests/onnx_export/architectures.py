"""Architectures of the guide's table that are exported, by the names that `--model` takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tests.sim.models.catalogue import CATALOGUE
from tests.sim.models.vision_libraries import timm, torchvision

__all__ = ["ARCHITECTURES", "Architecture", "calibrated", "of_guide", "timm", "torchvision"]


class Architecture(NamedTuple):
    """A row of the guide's table."""

    name: str
    factory: str
    init: str = ""
    input: str = "1x3x64x64"


def calibrated(model: torch.nn.Module, shape: tuple[int, ...]) -> torch.nn.Module:
    """With statistics of data, and units that are seldom at their edges, as after training.

    As it is drawn a deep model lets values shrink to nothing or grow from layer to layer, or it doubles every rounding
    error in each: nothing could be compared.
    """
    for layer in model.modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            layer.momentum = None
            torch.nn.init.constant_(layer.weight, 0.5)
            torch.nn.init.constant_(layer.bias, 0.5)
    with torch.no_grad():
        model.train()(torch.randn(8, *shape[1:]))
    return model.eval()


def of_guide(name: str) -> torch.nn.Module:
    """A model of the table by its name there."""
    return CATALOGUE[name].build()


def _torchvision(name: str, function: str, init: str = "", **others: Any) -> Architecture:
    return Architecture(name, f"torchvision.models:{function}", init, **others)


def _timm(name: str, model: str, **others: Any) -> Architecture:
    return Architecture(name, "timm:create_model", f"model_name='{model}'", **others)


def _own(name: str, **others: Any) -> Architecture:
    return Architecture(name, "tests.onnx_export.architectures:of_guide", f"name='{name}'", **others)


ARCHITECTURES = (
    _torchvision("AlexNet", "alexnet"),
    _torchvision("Densenet121", "densenet121"),
    _torchvision("DenseNet169", "densenet169"),
    _torchvision("FCN", "segmentation.fcn_resnet50", "weights_backbone=None"),
    _torchvision("GoogleNet", "googlenet", "init_weights=False, aux_logits=False"),
    _timm("Inception V4", "inception_v4", input="1x3x96x96"),
    _torchvision("MNASNet0_5", "mnasnet0_5"),
    _torchvision("MNASNet1_0", "mnasnet1_0"),
    _timm("MobileNetV1", "mobilenetv1_100"),
    _torchvision("MobileNetV2", "mobilenet_v2"),
    _torchvision("ResNet18", "resnet18"),
    _torchvision("ResNet50", "resnet50"),
    _torchvision("ResNet152", "resnet152"),
    _torchvision("Resnext50", "resnext50_32x4d"),
    _torchvision("Shufflenetv2", "shufflenet_v2_x1_0"),
    _torchvision("SqueezeNet1_0", "squeezenet1_0"),
    _torchvision("SqueezeNet1_1", "squeezenet1_1"),
    _torchvision("VGG11", "vgg11"),
    _torchvision("VGG16_BN", "vgg16_bn"),
    _own("U-Net"),
    _own("LPRNet", input="1x3x24x94"),
    _own("InceptionV2"),
)
