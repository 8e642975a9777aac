"""Names of the device module that a check looks up."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from tests.sim.checking import Target


def lookup(name: str) -> Any:
    """What a full dotted name means: torch.npu.amp.autocast."""
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def own_names(target: Target) -> dict[str, Any]:
    """The vendor's table: CUDA name -> entry, for names under torch.cuda."""
    return {name: api for name, api in target.vendor.apis.items() if name.startswith("torch.cuda.")}


def natural(target: Target, name: str) -> str:
    """A CUDA name under the vendor's module."""
    return target.vendor.torch_module + name[len("torch.cuda") :]


def is_module(value: object) -> bool:
    """Whether a value is a module."""
    return isinstance(value, ModuleType)
