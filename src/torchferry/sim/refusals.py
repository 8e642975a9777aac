"""Parts of torch.nn that the vendor's adapter refuses."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from torchferry.vendors.model import Support, Vendor


def install(vendor: Vendor) -> None:
    """Make torch.nn.DataParallel raise on the device where the vendor has none."""
    if vendor.data_parallel is not Support.UNSUPPORTED:
        return
    message = vendor.limits.data_parallel_message or (
        f"torch.nn.DataParallel is not supported on {vendor.company} devices; use "
        f"torch.nn.parallel.DistributedDataParallel with backend '{vendor.dist_backend}'"
    )
    make = torch.nn.DataParallel.__init__

    @wraps(make)
    def refuse_on_device(self: Any, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        tensors = (*module.parameters(), *module.buffers())
        if any(tensor.device.type == vendor.device_type for tensor in tensors):
            raise RuntimeError(message)
        make(self, module, *args, **kwargs)

    torch.nn.DataParallel.__init__ = refuse_on_device  # type: ignore[method-assign]
