"""Parts of torch.nn that the vendor's adapter refuses, or that can't be simulated."""

from __future__ import annotations

from functools import wraps
from typing import Any

from torch.nn import DataParallel

from torchferry.runtime.single_device import moving_to_one, one_device_or
from torchferry.sim import native
from torchferry.vendors.model import Support, Vendor


def install(vendor: Vendor) -> None:
    """Make torch.nn.DataParallel raise where it would spread over several devices."""
    message = _refusal(vendor)

    @wraps(DataParallel.__init__)
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(message)

    DataParallel.__init__ = one_device_or(native.device_count, refuse)  # type: ignore[method-assign]
    DataParallel.scatter = moving_to_one(DataParallel.scatter)  # type: ignore[method-assign]


def _refusal(vendor: Vendor) -> str:
    if vendor.data_parallel is Support.UNSUPPORTED:
        reason = f"torch.nn.DataParallel is not supported on {vendor.company} devices"
        if vendor.limits.data_parallel_message:
            return vendor.limits.data_parallel_message
    else:
        reason = (
            "torch.nn.DataParallel is not simulated (PyTorch's part of it is in CUDA builds only), and it is not known "
            f"whether {vendor.company} devices have it"
        )
    return (
        f"{reason}; let the program see one device ({vendor.visible_devices_env}=0, or --devices 1), which makes it the module itself, "
        f"or use torch.nn.parallel.DistributedDataParallel with backend '{vendor.dist_backend}': `ferry convert "
        f"--distributed --main SCRIPT --to {vendor.name}` rewrites a program that has only DataParallel"
    )
