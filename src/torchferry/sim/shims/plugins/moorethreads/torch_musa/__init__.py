"""torch_musa for the simulated device: its own names are those of torch.musa."""

from __future__ import annotations

from typing import Any

from torchferry.sim.shims import begin_plugin

_vendor = begin_plugin(__name__)

from torchferry.sim.shims.modules import adapter_version, device_module  # noqa: E402

from . import backends, optim  # noqa: E402

__version__ = adapter_version()

__all__ = ["__version__", "backends", "optim"]


def __getattr__(name: str) -> Any:
    """What torch.musa has by this name: the adapter is that module."""
    return getattr(device_module(_vendor), name)
