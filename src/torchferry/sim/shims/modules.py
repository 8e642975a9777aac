"""One module under several names: `torch_npu.npu` is `torch.npu`, and so are the modules below it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.checkpoint import DefaultDeviceType

from torchferry.vendors.model import Vendor


def device_module(vendor: Vendor) -> Any | None:
    """`torch.<type>` of the simulated device, None when only the stand-ins are installed."""
    name = vendor.torch_module.rpartition(".")[2]
    return getattr(torch, name, None)


def alias(name: str, module: ModuleType) -> None:
    """Let a module, and every module below it, be imported under another name as well."""
    original = module.__name__
    sys.modules[name] = module
    for known, below in list(sys.modules.items()):
        if known.startswith(original + ".") and below is not None:
            sys.modules.setdefault(name + known[len(original) :], below)
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


def adopt_device(vendor: Vendor, package: str) -> None:
    """What importing a plugin changes in torch, apart from the device: its module's second name, and defaults."""
    module = device_module(vendor)
    if not isinstance(module, ModuleType):
        return  # only the stand-ins are installed
    alias(f"{package}.{vendor.device_type}", module)
    DefaultDeviceType.set_device_type(vendor.device_type)  # of activation checkpointing
    if dist.is_available():
        setattr(dist, f"is_{vendor.dist_backend}_available", lambda: True)


def add_backend(name: str, **settings: Any) -> ModuleType:
    """torch.backends.<name>: switches of an adapter, which the simulated device remembers and does not use."""
    full = f"torch.backends.{name}"
    module = ModuleType(full, add_backend.__doc__)
    vars(module).update(settings)
    sys.modules[full] = module
    setattr(torch.backends, name, module)
    return module


def adapter_version() -> str:
    """The version that a plugin for this torch carries: torch's own, without a build tag."""
    return torch.__version__.partition("+")[0]
