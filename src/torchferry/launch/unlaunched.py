"""What `import torchferry.auto` does in a program that nothing else has started on a vendor's device."""

from __future__ import annotations

import multiprocessing
import os
import sys

from torchferry import variables
from torchferry.launch import plugin
from torchferry.launch.autoload import autoload
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

_DECIDED = (variables.TO, variables.LAYER, variables.SIM)


def take_part_unlaunched() -> None:
    """Do what the environment asks for; where it asks for nothing, look for a device. Doing it again does nothing."""
    import torch

    if not any(os.environ.get(variable) for variable in _DECIDED):
        if torch.cuda.is_available():
            return
        found = [vendor.name for vendor in map(get_vendor, vendor_names()) if _is_here(vendor)]
        if len(found) != 1:
            _warn(found)
            return
        os.environ[variables.TO] = found[0]
    autoload()


def _is_here(vendor: Vendor) -> bool:
    """A vendor with a plugin by its plugin, one that PyTorch knows itself by its device."""
    if vendor.plugin:
        return plugin.is_installed(vendor)
    import torch

    module = getattr(torch, vendor.device_type, None)
    return module is not None and bool(module.is_available())


def _warn(found: list[str]) -> None:
    if multiprocessing.parent_process() is not None:  # it has said so already
        return
    reason = (
        f"several accelerators are here ({', '.join(found)})"
        if found
        else "neither CUDA nor a plugin is here"
    )
    print(
        f"torchferry.auto: {reason}, so nothing was changed; set {variables.TO} to one of "
        f"{', '.join(found or vendor_names())}",
        file=sys.stderr,
    )
