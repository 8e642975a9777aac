"""Mixed precision: "cuda" as the device type of autocast and of the gradient scaler."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import CUDA, LayerTarget, taking_device_type

# Functions of torch whose first argument is a device type; without one some of them mean CUDA.
_STATE = (
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)
# CUDA's own forms -> the general one
_OF_GPU = {"get_autocast_gpu_dtype": "get_autocast_dtype", "set_autocast_gpu_dtype": "set_autocast_dtype"}


def changes(target: LayerTarget) -> Iterator[Change]:
    """Autocast and the scaler, then the functions that ask for and set autocast's state."""
    means = f'"cuda" is "{target.device_type}"'
    for name in ("autocast", "GradScaler"):
        owner: Any = getattr(torch.amp, name, None)  # the scaler for any device came with 2.3
        if owner is not None:
            yield Patch(f"torch.amp.{name}", owner, "__init__", _of_cuda(owner.__init__, target), means)
    for name in ("custom_fwd", "custom_bwd", "is_autocast_available"):
        function = getattr(torch.amp, name, None)
        if function is not None:
            yield Patch(f"torch.amp.{name}", torch.amp, name, taking_device_type(function, target, 0), means)
    if hasattr(torch, "get_autocast_dtype"):  # before 2.4 there is no form for any device
        for name in _STATE:
            yield Patch(f"torch.{name}", torch, name, _state(name, target), means)
        for name, general in _OF_GPU.items():
            function = functools.partial(getattr(torch, general), CUDA)
            yield Patch(f"torch.{name}", torch, name, function, f'torch.{general}("{target.device_type}")')
    else:  # torch's functions know CUDA and the CPU; a plugin has the same ones in its module, for autocast
        for name in ("is_autocast_enabled", "set_autocast_enabled", *_OF_GPU):
            own = _OF_GPU.get(name, name)
            function = getattr(target.module, own, None)
            if function is not None:
                yield Patch(f"torch.{name}", torch, name, function, f"{target.torch_module}.{own}")


def _of_cuda(make: Callable[..., Any], target: LayerTarget) -> Callable[..., Any]:
    """The constructor of autocast or of a scaler, for "cuda"."""
    translated = taking_device_type(make, target, 1)
    if not target.is_reference or "dtype" not in inspect.signature(make).parameters:
        return translated

    @functools.wraps(make)
    def in_float16(self: Any, device_type: str, dtype: Any = None, *args: Any, **settings: Any) -> None:
        """CUDA's autocast computes in float16 unless told otherwise, the CPU's in bfloat16."""
        chosen = torch.float16 if dtype is None and device_type == CUDA else dtype
        translated(self, device_type, chosen, *args, **settings)

    return in_float16


def _state(name: str, target: LayerTarget) -> Callable[..., Any]:
    """The function of autocast's state; without a device type it means the target, as it meant CUDA."""
    original = getattr(torch, name)
    own, is_on = target.device_type, torch.is_autocast_enabled

    @functools.wraps(original)
    def translated(*args: Any) -> Any:
        if target.is_reference and args == (CUDA,) and name == "get_autocast_dtype" and not is_on(own):
            return torch.float16  # CUDA's, before a program says otherwise; the CPU's is bfloat16
        if args and isinstance(args[0], str):
            return original(target.device_type_of(args[0]), *args[1:])
        return original(own, *args)

    return translated
