"""The devices that are compared with the CPU: the simulated one without its limits, and the vendor's plugin, emulated."""

from __future__ import annotations

import os

import torch

from torchferry import emulate, sim
from torchferry.sim import native
from torchferry.vendors.registry import get_vendor


def unlimited_device(vendor_name: str) -> torch.device:
    """Activate a vendor's device in this process and lift the limits in this thread, which runs backward, too.

    The CPU computes products in half precision as the device does, as in a proof.
    """
    sim.activate(vendor_name, devices=1)
    native.set_limits(False)
    native.compute_half_in_single()
    return torch.device(get_vendor(vendor_name).device_type, 0)


def emulated_device(vendor_name: str) -> torch.device:
    """Activate a vendor's own plugin in this process; each error is raised by the call that it belongs to."""
    os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"
    emulate.activate(vendor_name, devices=1, shared_randomness=True)
    return torch.device(get_vendor(vendor_name).device_type, 0)
