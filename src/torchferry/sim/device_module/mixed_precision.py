"""Mixed precision: autocast and gradient scaling under the vendor's own names, with their old signatures."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.runtime import device_parts
from torchferry.sim import native
from torchferry.sim.device_module.devices import device_type, identity


class Autocast(device_parts.Autocast):
    """torch.autocast for the simulated device."""

    _device_type = staticmethod(device_type)


class GradScaler(device_parts.GradScaler):
    """torch.amp.GradScaler for the simulated device."""

    _device_type = staticmethod(device_type)


class SwitchableGradScaler(GradScaler):
    """A GradScaler that can also keep its scale: with dynamic=False no step is skipped.

    A vendor's own scaler doesn't ask the device for float64; torch's does, for one number.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        super().__init__(init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self._dynamic = dynamic

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide the gradients of an optimizer by the scale."""
        with native.limits(False):
            super().unscale_(optimizer)

    def _unscale_grads_(self, *args: Any, **kwargs: Any) -> dict[torch.device, torch.Tensor]:
        with native.limits(True):
            found: dict[torch.device, torch.Tensor] = super()._unscale_grads_(*args, **kwargs)
        if self._dynamic:
            return found
        return {device: torch.zeros_like(tensor) for device, tensor in found.items()}

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """Adjust the scale, or only begin the next step when it is static."""
        if new_scale is None and self._enabled and not self._dynamic:
            new_scale = self.get_scale()
        super().update(new_scale)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that the vendor's autocast takes."""
    return [getattr(torch, name) for name in identity().vendor.amp_dtypes]


def is_autocast_enabled() -> bool:
    """Whether autocast is on for the device in this thread."""
    return torch.is_autocast_enabled(device_type())


def set_autocast_enabled(enabled: bool) -> None:
    """Turn autocast on or off for the device in this thread."""
    torch.set_autocast_enabled(device_type(), enabled)


def get_autocast_dtype() -> torch.dtype:
    """The dtype that autocast uses on the device."""
    return torch.get_autocast_dtype(device_type())


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Choose the dtype that autocast uses on the device."""
    torch.set_autocast_dtype(device_type(), dtype)


AUTOCAST_API = {"autocast": Autocast, **device_parts.custom_casts(device_type)}
SCALER_API = {"GradScaler": GradScaler}
COMMON_API = {"amp_definitely_not_available": device_parts.amp_definitely_not_available}

# What torch's own code has asked of a device module for autocast, in one release or another
INTERNAL = {
    "get_amp_supported_dtype": get_amp_supported_dtype,
    "get_autocast_dtype": get_autocast_dtype,
    "is_autocast_enabled": is_autocast_enabled,
    "set_autocast_dtype": set_autocast_dtype,
    "set_autocast_enabled": set_autocast_enabled,
}
