"""Who the simulated device says it is: the facts that the module's functions ask for while a program runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.vendors.model import Vendor

IDENTITY_ATTRIBUTE = "_simulated_identity"


@dataclass(frozen=True)
class Identity:
    """The vendor, what its device is called, and what it answers about itself."""

    vendor: Vendor
    device_name: str
    total_memory: int  # bytes of each device, before any limit that the program sets
    properties: Mapping[str, object]  # fields of get_device_properties beside name and total_memory
    capability_env: str  # variable that holds the answer of get_device_capability, "" when there is none


def device_type() -> str:
    """The type of the device that this process simulates."""
    return torch._C._get_privateuse1_backend_name()


def device_module() -> Any:
    """The module under torch that is named like the device."""
    return getattr(torch, device_type())


def identity() -> Identity:
    """What the installed module was built from; it lives there, so that nothing here changes at run time."""
    found: Identity = getattr(device_module(), IDENTITY_ATTRIBUTE)
    return found
