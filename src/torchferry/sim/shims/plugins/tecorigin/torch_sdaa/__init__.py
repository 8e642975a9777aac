"""torch_sdaa for the simulated device."""

from __future__ import annotations

from torchferry.sim.shims import begin_plugin

_vendor = begin_plugin(__name__)

from torchferry.sim.shims.modules import adapter_version, alias, device_module  # noqa: E402

_device = device_module(_vendor)
if _device is not None and hasattr(_device, "amp"):
    alias(f"{__name__}.amp", _device.amp)  # published ports import it from here, too

from . import core, nn, optim, utils  # noqa: E402

__version__ = adapter_version()

__all__ = ["__version__", "core", "nn", "optim", "utils"]
