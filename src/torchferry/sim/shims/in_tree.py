"""What programs of the time wrote when the vendor's adapter was a changed PyTorch, with no plugin to import."""

from __future__ import annotations

import functools
from typing import Any

from torchferry.vendors.model import Vendor


def accept_profiler_arguments(vendor: Vendor) -> None:
    """torch.autograd.profiler.profile(use_npu=True): the argument was named after the device, as CUDA's is."""
    from torch.autograd.profiler import profile

    watch, simple = f"use_{vendor.device_type}", f"use_{vendor.device_type}_simple"
    make: Any = profile.__init__

    @functools.wraps(make)
    def accept(self: Any, enabled: bool = True, **settings: Any) -> None:
        settings.pop(simple, None)  # fewer rows in the trace, nothing else
        if settings.pop(watch, False):
            settings["use_device"] = vendor.device_type
        make(self, enabled, **settings)

    target: Any = profile
    target.__init__ = accept
