"""torch_mlu for the simulated device."""

from __future__ import annotations

from torchferry.sim.shims import begin_plugin

_vendor = begin_plugin(__name__)

from torchferry.sim.shims.modules import adapter_version  # noqa: E402

from . import backends, optimizers, utils  # noqa: E402

__version__ = adapter_version()

__all__ = ["__version__", "backends", "optimizers", "utils"]
