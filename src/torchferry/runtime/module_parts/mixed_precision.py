"""Mixed precision as torch.cuda.amp has it, with its old signatures, for a device type that a subclass names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

DeviceType = Callable[[], str]


class Autocast(torch.amp.autocast_mode.autocast):
    """torch.autocast of one device type, in float16 unless told otherwise."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__(self._device_type(), enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    @staticmethod
    def _device_type() -> str:
        raise NotImplementedError


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler of one device type."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            self._device_type(),
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )

    @staticmethod
    def _device_type() -> str:
        raise NotImplementedError


def custom_casts(device_type: DeviceType) -> dict[str, Callable[..., Any]]:
    """The decorators of an autograd function's forward and backward."""

    def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
        """Decorate the forward of an autograd function as torch.amp.custom_fwd does."""
        if fwd is None:
            return functools.partial(custom_fwd, cast_inputs=cast_inputs)
        return torch.amp.custom_fwd(fwd, device_type=device_type(), cast_inputs=cast_inputs)

    def custom_bwd(bwd: Any) -> Any:
        """Decorate the backward of an autograd function as torch.amp.custom_bwd does."""
        return torch.amp.custom_bwd(bwd, device_type=device_type())

    return {"custom_bwd": custom_bwd, "custom_fwd": custom_fwd}


def amp_definitely_not_available() -> bool:
    """False: the device has autocast."""
    return False
