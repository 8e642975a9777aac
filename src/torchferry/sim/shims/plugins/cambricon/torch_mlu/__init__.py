"""torch_mlu for the simulated device."""

from __future__ import annotations

from torchferry.sim.shims import require_simulator

_vendor = require_simulator(__name__)

from torchferry.sim.shims.modules import adapter_version, adopt_device  # noqa: E402

adopt_device(_vendor, __name__)

from . import backends, optimizers, utils  # noqa: E402

__version__ = adapter_version()

__all__ = ["__version__", "backends", "optimizers", "utils"]
