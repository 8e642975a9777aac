"""torch_sdaa.core.sdaa_model: torch.sdaa under an older name; ports choose their device with it."""

from __future__ import annotations

from typing import Any

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.modules import device_module


def __getattr__(name: str) -> Any:
    """What torch.sdaa has by this name."""
    return getattr(device_module(require_simulator("torch_sdaa")), name)
