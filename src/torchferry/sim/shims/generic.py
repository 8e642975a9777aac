"""The plugin of a vendor that a user described in data alone: made from that data, with no file of its own."""

from __future__ import annotations

import sys
from types import ModuleType

from torchferry.vendors.model import Vendor


def register_plugin(vendor: Vendor) -> None:
    """Put `<plugin>`, its device module and its fused optimizers into sys.modules."""
    from torchferry.sim.shims import modules
    from torchferry.sim.shims.optim import by_name

    plugin = _package(vendor.plugin)
    plugin.__dict__["__version__"] = modules.adapter_version()
    modules.adopt_device(vendor, vendor.plugin)
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
    module = ModuleType(name, "Made from the vendor's data for the simulator.")
    module.__path__ = []
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(_package(parent), last, module)
    return module
