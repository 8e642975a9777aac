"""Weights in the storage format of a device's kernels, cast once, so that no step has to convert them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchferry.perf.affinity.optimizers import vendor_of
from torchferry.vendors.host import WeightFormats, load_host


def cast_weights(model: nn.Module) -> int:
    """Cast the weights of a model that is on its device; how many were cast.

    On Ascend: Conv2d to FRACTAL_Z, Linear to FRACTAL_NZ, as its guide advises against TransData in every step. Values,
    shapes and gradients stay. On devices whose vendor names no formats nothing is done.
    """
    count = 0
    for module in model.modules():
        weight = getattr(module, "weight", None)
        # Grouped convolutions have kernels of their own, for another format.
        if not isinstance(weight, torch.Tensor) or weight.is_meta or getattr(module, "groups", 1) != 1:
            continue
        known = _formats(weight.device.type)
        wanted = None if known is None else known.modules.get(type(module).__name__)
        if known is not None and wanted is not None:
            weight.data = _function(known.cast)(weight.data, int(wanted))
            count += 1
    return count


def _formats(device_type: str) -> WeightFormats | None:
    vendor = vendor_of(device_type)
    return None if vendor is None else load_host(Path(vendor.folder)).weight_formats


def _function(name: str) -> Any:
    package, _, function = name.rpartition(".")
    return getattr(importlib.import_module(package), function)
