"""A process in which the device draws from the CPU's generator and the CPU casts as CUDA does: what a proof needs."""

from __future__ import annotations

import torch

from tests.sim.checking import DEVICE, Target
from torchferry.sim import activate
from torchferry.sim.reference import compute_as_cuda
from torchferry.vendors.registry import get_vendor


def prepare(vendor_name: str, place: str = DEVICE) -> Target:
    """Both sides of a proof in one process."""
    activate(vendor_name, devices=2, memory="1GiB", shared_randomness=True)
    compute_as_cuda()
    vendor = get_vendor(vendor_name)
    return Target(vendor, getattr(torch, vendor.device_type))
