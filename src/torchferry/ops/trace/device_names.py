"""Which device the categories of a trace speak of."""

from __future__ import annotations

import re
from functools import cache

from torchferry.vendors.registry import get_vendor, vendor_names

CUDA = "cuda"  # also what PyTorch calls AMD's devices
_FLOW = re.compile(r"(?:cpu_to|async)_(\w+)$")
_LAUNCH = re.compile(r"(?:(\w+)_)?(?:runtime|driver)$", re.IGNORECASE)


@cache
def flow_device(category: str) -> str:
    """The type of the device that a flow of events leads to: npu of async_npu; "" if it leads elsewhere."""
    found = _FLOW.match(category)
    return found[1] if found and _is_device_type(found[1]) else ""


@cache
def is_launch(category: str) -> bool:
    """Whether the host calls the library of a device: cuda_runtime, cuda_driver, Runtime."""
    return _LAUNCH.match(category) is not None


@cache
def launching_device(category: str) -> str:
    """cuda of cuda_runtime; "" if the category does not say."""
    found = _LAUNCH.match(category)
    named = (found[1] or "").lower() if found else ""
    return named if _is_device_type(named) else ""


@cache
def other_launching_device(category: str) -> str:
    """mtia of mtia_runtime: what a category calls a device, whether or not a vendor of it is known."""
    found = _LAUNCH.match(category)
    return (found[1] or "").lower() if found else ""


def _is_device_type(name: str) -> bool:
    """Vendors' data are read only for a name that is neither empty nor CUDA's: that takes a while."""
    return bool(name) and (name == CUDA or name in _device_types())


@cache
def _device_types() -> frozenset[str]:
    return frozenset({CUDA, *(get_vendor(name).device_type for name in vendor_names())})
