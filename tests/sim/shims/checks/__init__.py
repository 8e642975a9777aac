"""Checks on the stand-ins of one vendor. In the place "cpu" only they are installed; otherwise the whole simulator."""

from __future__ import annotations

from tests.sim.checking import activated
from torchferry.vendors.registry import get_vendor


def prepare(vendor_name: str, place: str) -> str:
    """Make the stand-ins importable; answers the device for the checks."""
    if place == "cpu":
        from torchferry.sim import shims

        shims.install(get_vendor(vendor_name))
        return "cpu"
    return f"{activated(vendor_name).type}:0"


def after_each() -> None:
    """O1 casts everything from then on; the next check begins without."""
    import torch
    from apex.amp import _amp_state

    for device_type in _amp_state.cast_devices:
        torch.set_autocast_enabled(device_type, False)
    _amp_state.cast_devices = ()
