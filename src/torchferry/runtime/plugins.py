"""The vendor's own plugin in this process: loading it, and keeping its own migration out of the layer's way."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from torchferry.errors import RunError
from torchferry.runtime.patches import Action, Change
from torchferry.runtime.target import LayerTarget
from torchferry.vendors.model import Vendor


def device_module(vendor: Vendor) -> Any:
    """torch.<type>, after the plugin has been imported if it is not there yet."""
    name = vendor.torch_module.rpartition(".")[2]
    if not hasattr(torch, name) and vendor.plugin:
        try:
            importlib.import_module(vendor.plugin)
        except Exception as error:  # a plugin without its driver raises what it likes
            raise RunError(
                f"{vendor.plugin} can't be imported ({error}): install {vendor.company}'s plugin for PyTorch, or "
                "activate the simulated device first (torchferry.sim.activate, ferry run --sim)"
            ) from error
    module = getattr(torch, name, None)
    if module is None:
        raise RunError(f"{vendor.name}: this PyTorch has no {vendor.torch_module}")
    return module


def changes(target: LayerTarget) -> Iterator[Change]:
    """A program's own `import torch_npu.contrib.transfer_to_npu` finds an empty module: the layer does its work."""
    for name in target.vendor.migrations if target.vendor else ():
        if name not in sys.modules:
            yield _stand_in(name)


def _stand_in(name: str) -> Change:
    module = ModuleType(name, "Does nothing: the layer has made CUDA's names mean this device already.")
    parent, _, leaf = name.rpartition(".")

    def put() -> None:
        sys.modules[name] = module
        if parent in sys.modules:
            setattr(sys.modules[parent], leaf, module)

    def take_back() -> None:
        if sys.modules.get(name) is module:
            del sys.modules[name]
        if parent in sys.modules and vars(sys.modules[parent]).get(leaf) is module:
            delattr(sys.modules[parent], leaf)

    return Action(name, "an empty module", put, take_back)
