"""Modules of the plugins: one under several names, backends' switches, a plugin made of data alone, the migration to a device."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.checkpoint import DefaultDeviceType

from torchferry.runtime.settings import LayerSettings, TypeChecks
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


def register_plugin(vendor: Vendor) -> None:
    """Put `<plugin>`, its device module and its fused optimizers into sys.modules."""
    from torchferry.sim.shims.optim import by_name

    plugin = _package(vendor.plugin)
    plugin.__dict__["__version__"] = adapter_version()
    adopt_device(vendor, vendor.plugin)
    if not vendor.fused_optimizer_module.startswith(vendor.plugin + "."):
        return
    optimizers = _package(vendor.fused_optimizer_module)
    for name in vendor.fused_optimizers:
        known = by_name(name)
        if known is not None:
            setattr(optimizers, name, known)


def _package(name: str) -> ModuleType:
    """A module that can be imported by its dotted name, and its parents."""
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name, "Created from the vendor's data for the simulated device.")
    module.__path__ = []
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(_package(parent), last, module)
    return module


def migrate(vendor: Vendor) -> None:
    """Let torch.cuda, `.cuda()`, "cuda" and "nccl" mean the vendor's device in this process, once.

    A device's type stays the vendor's alone, as it does with the vendors' own migrations.
    """
    from torchferry.runtime.layer import activate_layer

    if device_module(vendor) is None:
        raise RuntimeError(f"{vendor.torch_module} does not exist; activate the simulated device first")
    activate_layer(LayerSettings(vendor.name, type_checks=TypeChecks.VENDOR), vendor)
