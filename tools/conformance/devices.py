"""The simulated device without its vendor's limits: every operator and dtype runs."""

from __future__ import annotations

import torch

from torchferry import sim
from torchferry.sim import native
from torchferry.vendors.registry import get_vendor


def unlimited_device(vendor_name: str) -> torch.device:
    """Activate a vendor's device in this process and lift the limits in this thread, which runs backward, too.

    The CPU computes products in half precision as the device does, as in a proof.
    """
    sim.activate(vendor_name, devices=1)
    native.set_gate(False)
    native.compute_half_in_single()
    return torch.device(get_vendor(vendor_name).device_type, 0)
