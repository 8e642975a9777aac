"""Parts of torch.nn that the vendor's adapter refuses, or that can't be simulated."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from torchferry.vendors.model import Support, Vendor


def install(vendor: Vendor) -> None:
    """Make torch.nn.DataParallel raise: with a device in the machine it would spread over all of them."""
    message = _refusal(vendor)
    make = torch.nn.DataParallel.__init__

    @wraps(make)
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(message)

    torch.nn.DataParallel.__init__ = refuse  # type: ignore[method-assign]


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
        f"{reason}; use torch.nn.parallel.DistributedDataParallel with backend '{vendor.dist_backend}': `ferry convert "
        f"--distributed --main SCRIPT --to {vendor.name}` rewrites the program so"
    )
