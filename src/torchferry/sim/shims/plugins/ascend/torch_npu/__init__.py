"""torch_npu for the simulated device: the adapter's own names, computed with torch's operators."""

from __future__ import annotations

from typing import Any

from torchferry.sim.shims import begin_plugin

_vendor = begin_plugin(__name__)

from torchferry.sim.shims.modules import adapter_version  # noqa: E402

from . import attention, contrib, distributed, formats, kernels, optim, profiler, utils  # noqa: E402
from .operators import not_simulated, publish, simulated  # noqa: E402

__version__ = adapter_version()

_OPERATORS = simulated((attention, formats, kernels))
publish(_OPERATORS)

__all__ = ["__version__", "contrib", "distributed", "optim", "profiler", "utils"]


def __getattr__(name: str) -> Any:
    """An operator of the adapter; one that exists on the card and not here can be asked for, not called."""
    if name in _OPERATORS:
        return _OPERATORS[name]
    missing = not_simulated(name)
    if missing is not None:
        return missing
    raise AttributeError(f"module 'torch_npu' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *_OPERATORS, _vendor.device_type])
