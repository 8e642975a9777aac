"""Mixed precision of the stand-in: autocast and gradient scaling of the CPU, under CUDA's names and defaults."""

from __future__ import annotations

from typing import Any

from torchferry.runtime.module_parts import mixed_precision


def _cpu() -> str:
    return "cpu"


class Autocast(mixed_precision.Autocast):
    """torch.cuda.amp.autocast on the CPU."""

    _device_type = staticmethod(_cpu)


class GradScaler(mixed_precision.GradScaler):
    """torch.cuda.amp.GradScaler on the CPU."""

    _device_type = staticmethod(_cpu)


_AUTOCAST = {"autocast": Autocast, **mixed_precision.custom_casts(_cpu)}
_SCALER = {"GradScaler": GradScaler}
_COMMON = {"amp_definitely_not_available": mixed_precision.amp_definitely_not_available}
# torch.cuda.amp and what is below it -> its names
MODULES: dict[str, dict[str, Any]] = {
    "amp": {**_AUTOCAST, **_SCALER, **_COMMON},
    "amp.autocast_mode": _AUTOCAST,
    "amp.common": _COMMON,
    "amp.grad_scaler": _SCALER,
}
