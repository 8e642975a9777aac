"""Mixed precision: autocast and gradient scaling under the vendor's own names, with their old signatures."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.sim import native
from torchferry.sim.device_module.identity import device_type, identity


class Autocast(torch.amp.autocast_mode.autocast):
    """torch.autocast for the simulated device."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__(device_type(), enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler for the simulated device."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            device_type(),
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


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
        with _limits(False):
            super().unscale_(optimizer)

    def _unscale_grads_(self, *args: Any, **kwargs: Any) -> dict[torch.device, torch.Tensor]:
        with _limits(True):
            found: dict[torch.device, torch.Tensor] = super()._unscale_grads_(*args, **kwargs)
        if self._dynamic:
            return found
        return {device: torch.zeros_like(tensor) for device, tensor in found.items()}

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """Adjust the scale, or only begin the next step when it is static."""
        if new_scale is None and self._enabled and not self._dynamic:
            new_scale = self.get_scale()
        super().update(new_scale)


@contextlib.contextmanager
def _limits(on: bool) -> Iterator[None]:
    before = native.set_gate(on)
    try:
        yield
    finally:
        native.set_gate(before)


def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """Decorate the forward of an autograd function as torch.amp.custom_fwd does."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return torch.amp.custom_fwd(fwd, device_type=device_type(), cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Decorate the backward of an autograd function as torch.amp.custom_bwd does."""
    return torch.amp.custom_bwd(bwd, device_type=device_type())


def amp_definitely_not_available() -> bool:
    """False: the simulated device has autocast."""
    return False


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


AUTOCAST_API = {"autocast": Autocast, "custom_bwd": custom_bwd, "custom_fwd": custom_fwd}
SCALER_API = {"GradScaler": GradScaler}
COMMON_API = {"amp_definitely_not_available": amp_definitely_not_available}

# What torch's own code has asked of a device module for autocast, in one release or another
INTERNAL = {
    "get_amp_supported_dtype": get_amp_supported_dtype,
    "get_autocast_dtype": get_autocast_dtype,
    "is_autocast_enabled": is_autocast_enabled,
    "set_autocast_dtype": set_autocast_dtype,
    "set_autocast_enabled": set_autocast_enabled,
}
