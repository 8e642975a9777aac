"""Checks with the layer active over a simulated device: programs' own words, `cuda` in all of them."""

from __future__ import annotations

from tests.sim.checking import Target, activated


def prepare(vendor_name: str, place: str) -> Target:
    """Simulate two devices, then lay CUDA's names over them; a library that was imported before is there as well."""
    import tests.runtime.imported_before  # noqa: F401
    from torchferry import runtime

    target = activated(vendor_name, place)
    runtime.activate(vendor_name)
    return target


def after_each() -> None:
    """The next check begins on device 0 and without defaults of this one."""
    import torch

    torch.set_default_device(None)
    torch.cuda.set_device(0)
