"""Lets tensors of the simulated device be exchanged by DLPack: PyTorch looks for its place for extra devices under a
name that it no longer has once a vendor has named it."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

_EXTENSION_DEVICE = 12  # kDLExtDev, which PyTorch writes into the capsule


def install(device_type: str) -> None:
    """Make Tensor.__dlpack_device__ know the device; torch.from_dlpack(tensor) asks for it."""
    answer = torch.Tensor.__dlpack_device__

    @wraps(answer)
    def with_device(self: torch.Tensor) -> Any:
        if self.device.type == device_type:
            return _kind(), self.device.index
        return answer(self)

    torch.Tensor.__dlpack_device__ = with_device  # type: ignore[method-assign]


def _kind() -> Any:
    from torch.utils.dlpack import DLDeviceType

    return DLDeviceType(_EXTENSION_DEVICE)
