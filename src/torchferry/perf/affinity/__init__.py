"""Forms of common code that accelerators run faster, each equal to the plain form. Runs on any device of PyTorch."""

from torchferry.perf.affinity.detection import fast_rcnn_inference_single_image, pairwise_iou
from torchferry.perf.affinity.formats import cast_weights
from torchferry.perf.affinity.labels import CrossEntropyLoss, cross_entropy
from torchferry.perf.affinity.optimizers import fused, fused_form, fused_optimizer
from torchferry.perf.affinity.preload import PreLoader
from torchferry.perf.affinity.shuffle import ChannelShuffle, channel_shuffle

__all__ = [
    "ChannelShuffle",
    "CrossEntropyLoss",
    "PreLoader",
    "cast_weights",
    "channel_shuffle",
    "cross_entropy",
    "fast_rcnn_inference_single_image",
    "fused",
    "fused_form",
    "fused_optimizer",
    "pairwise_iou",
]
