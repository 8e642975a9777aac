"""torchvision and timm beside a CPU build of torch: import them from here.

torchvision's wheels are CUDA builds. Their C++ operators can't be loaded here, and importing the package fails
because it describes operators that then don't exist. Declaring those operators first lets it be imported; the
models of the catalogue don't call them.
"""

from __future__ import annotations

import torch

_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

# Kept for the life of the process: the declarations go away with it.
_DECLARED = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    _DECLARED.define(f"{_name}{_NMS}")

import timm  # noqa: E402
import torchvision  # noqa: E402

__all__ = ["timm", "torchvision"]
