"""Image classifiers that torchvision or timm has, at their published size; only the pictures are small."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .data import CLASSES, labelled_pictures
from .entry import Batch, ModelEntry, Origin, trained_with
from .vision_libraries import timm, torchvision

# The guide's name -> the library's name and the size of the pictures.
_TORCHVISION = {
    "AlexNet": ("alexnet", 64),
    "Densenet121": ("densenet121", 32),
    "DenseNet161": ("densenet161", 32),
    "DenseNet169": ("densenet169", 32),
    "DenseNet201": ("densenet201", 32),
    "MNASNet0_5": ("mnasnet0_5", 64),
    "MNASNet0_75": ("mnasnet0_75", 64),
    "MNASNet1_0": ("mnasnet1_0", 64),
    "MNASNet1_3": ("mnasnet1_3", 64),
    "MobileNetV2": ("mobilenet_v2", 64),
    "ResNet101": ("resnet101", 48),
    "ResNet152": ("resnet152", 48),
    "ResNet18": ("resnet18", 64),
    "ResNet34": ("resnet34", 64),
    "ResNet50": ("resnet50", 64),
    "Resnext101_32x8d": ("resnext101_32x8d", 48),
    "Resnext50": ("resnext50_32x4d", 64),
    "Shufflenetv2": ("shufflenet_v2_x1_0", 64),
    "SqueezeNet1_0": ("squeezenet1_0", 64),
    "SqueezeNet1_1": ("squeezenet1_1", 64),
    "VGG11": ("vgg11", 32),
    "VGG11_BN": ("vgg11_bn", 32),
    "VGG13": ("vgg13", 32),
    "VGG13_BN": ("vgg13_bn", 32),
    "VGG16": ("vgg16", 32),
    "VGG16_BN": ("vgg16_bn", 32),
    "VGG19": ("vgg19", 32),
    "VGG19_BN": ("vgg19_bn", 32),
    "Wide_ResNet101_2": ("wide_resnet101_2", 32),
    "Wide_ResNet50_2": ("wide_resnet50_2", 32),
}
_TIMM = {
    "Inception V4": ("inception_v4", 80),
    "MobileNetV1": ("mobilenetv1_100", 64),
}
_COUNT = 4
_VIT_SIZE = 32


def class_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Cross entropy of the classes."""
    return functional.cross_entropy(model(batch["pictures"]), batch["labels"])


def _googlenet_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The main classifier, and the two auxiliary ones with their published weight."""
    outputs = model(batch["pictures"])
    main, *auxiliary = (functional.cross_entropy(output, batch["labels"]) for output in outputs)
    return main + 0.3 * sum(auxiliary)


def _vit_base() -> nn.Module:
    """ViT-B/16's blocks; its positions are those of small pictures."""
    return torchvision.models.VisionTransformer(
        image_size=_VIT_SIZE,
        patch_size=16,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        mlp_dim=3072,
        dropout=0.1,
        num_classes=CLASSES,
    )


def _from_torchvision(name: str, source: str, size: int) -> ModelEntry:
    return ModelEntry(
        name,
        Origin.TORCHVISION,
        source,
        build=partial(torchvision.models.get_model, source, num_classes=CLASSES),
        batch=partial(labelled_pictures, _COUNT, size),
        turns=trained_with(class_loss),
    )


def _from_timm(name: str, source: str, size: int) -> ModelEntry:
    return ModelEntry(
        name,
        Origin.TIMM,
        source,
        build=partial(timm.create_model, source, num_classes=CLASSES),
        batch=partial(labelled_pictures, _COUNT, size),
        turns=trained_with(class_loss),
    )


ENTRIES = [
    *(_from_torchvision(name, *facts) for name, facts in _TORCHVISION.items()),
    *(_from_timm(name, *facts) for name, facts in _TIMM.items()),
    ModelEntry(
        "GoogleNet",
        Origin.TORCHVISION,
        "googlenet",
        build=partial(torchvision.models.googlenet, num_classes=CLASSES, init_weights=False),
        batch=partial(labelled_pictures, _COUNT, 64),
        turns=trained_with(_googlenet_loss),
        note=Text("With both auxiliary classifiers.", "含两个辅助分类器。"),
    ),
    ModelEntry(
        "VIT-base",
        Origin.TORCHVISION,
        "VisionTransformer",
        build=_vit_base,
        batch=partial(labelled_pictures, _COUNT, _VIT_SIZE),
        turns=trained_with(class_loss),
        note=Text("ViT-B/16; dropout 0.1.", "ViT-B/16，dropout 为 0.1。"),
    ),
]
