"""The device of a process while it is profiled: its name, its memory, the operators that it lacks."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

_CPU = "cpu"


def device_name(device: str) -> str:
    """As the vendor calls it; "" where it is not known."""
    with suppress(Exception):  # a plugin may lack the function, or have it for another device
        return str(_module(device).get_device_name())
    return ""


def memory(device: str) -> dict[str, int]:
    """Bytes, by the fields of Told; those that are not known are left out."""
    module, found = _module(device), {}
    with suppress(Exception):
        found["memory_limit"] = int(module.mem_get_info()[1])
    with suppress(Exception):
        found["memory_peak"] = int(module.max_memory_allocated())
        found["memory_reserved"] = int(module.max_memory_reserved())
    return found


def _module(device: str) -> Any:
    return None if device == _CPU else getattr(torch, device, None)
