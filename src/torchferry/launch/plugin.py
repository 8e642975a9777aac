"""Whether a vendor's real plugin is installed, and what that means for a run. Imports no torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torchferry.sim import shims
from torchferry.text import Text
from torchferry.vendors.model import Vendor

_NOT_INSTALLED = Text(
    "{plugin} is not installed: running on a simulated {device} device",
    "未安装 {plugin}：在模拟的 {device} 设备上运行",
)


def is_installed(vendor: Vendor) -> bool:
    """Whether this interpreter finds the vendor's plugin. The simulator's stand-in for it, which processes under
    `ferry run` find as well, does not count; a vendor without a plugin has none."""
    if not vendor.plugin:
        return False
    try:
        spec = importlib.util.find_spec(vendor.plugin)
    except ValueError:  # a module that was made by hand, as the simulator makes some
        return False
    if spec is None:
        return False
    places = [*filter(None, [spec.origin]), *(spec.submodule_search_locations or ())]
    return not any(Path(place).is_relative_to(Path(shims.__file__).parent) for place in places)


def is_to_be_simulated(vendor: Vendor) -> bool:
    """Whether a program has to make do with a simulated device; one that PyTorch has in tree can't be simulated."""
    return bool(vendor.plugin) and not is_installed(vendor)


def not_installed(vendor: Vendor) -> Text:
    """What a user is told who did not ask for a simulated device."""
    return _NOT_INSTALLED.format(plugin=vendor.plugin, device=vendor.device_type)
