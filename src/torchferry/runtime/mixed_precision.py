"""Mixed precision: "cuda" as the device type of autocast and of the gradient scaler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchferry.runtime.patches import Action, Change, Patch
from torchferry.runtime.target import Target

# Functions of torch whose first argument is a device type; without one some of them mean CUDA.
_STATE = (
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)
# CUDA's own forms -> the general one
_OF_GPU = {"get_autocast_gpu_dtype": "get_autocast_dtype", "set_autocast_gpu_dtype": "set_autocast_dtype"}


def changes(target: Target) -> Iterator[Change]:
    """Autocast and the scaler, then the functions that ask for and set autocast's state."""
    means = f'"cuda" is "{target.device_type}"'
    for name in ("autocast", "GradScaler"):
        owner: Any = getattr(torch.amp, name, None)  # the scaler for any device came with 2.3
        if owner is not None:
            yield Patch(f"torch.amp.{name}", owner, "__init__", _of_type(owner.__init__, target, 1), means)
    for name in ("custom_fwd", "custom_bwd", "is_autocast_available"):
        function = getattr(torch.amp, name, None)
        if function is not None:
            yield Patch(f"torch.amp.{name}", torch.amp, name, _of_type(function, target, 0), means)
    takes_type = hasattr(torch, "get_autocast_dtype")  # before 2.4 there is no form for any device
    if takes_type:
        for name in _STATE:
            yield Patch(f"torch.{name}", torch, name, _state(name, target), means)
        for name, general in _OF_GPU.items():
            function = functools.partial(getattr(torch, general), target.device_type)
            yield Patch(f"torch.{name}", torch, name, function, f'torch.{general}("{target.device_type}")')
    else:
        yield from _state_of_module(target)
    if target.is_reference and takes_type:
        yield _default_dtype(target)


def _of_type(function: Callable[..., Any], target: Target, position: int) -> Callable[..., Any]:
    """The function, whose argument at a position, or by name, is a device type."""

    @functools.wraps(function)
    def translated(*args: Any, **settings: Any) -> Any:
        if len(args) > position:
            args = (*args[:position], target.device_type_of(args[position]), *args[position + 1 :])
        for name in ("device_type", "device"):
            if name in settings:
                settings[name] = target.device_type_of(settings[name])
        return function(*args, **settings)

    return translated


def _state(name: str, target: Target) -> Callable[..., Any]:
    """The function of autocast's state; without a device type it means the target, as it meant CUDA."""
    original = getattr(torch, name)
    own = target.device_type

    @functools.wraps(original)
    def translated(*args: Any) -> Any:
        if args and isinstance(args[0], str):
            return original(target.device_type_of(args[0]), *args[1:])
        return original(own, *args)

    return translated


def _state_of_module(target: Target) -> Iterator[Change]:
    """Before 2.4 torch's functions know CUDA and the CPU; a plugin has the same ones in its module, for autocast."""
    for name in ("is_autocast_enabled", "set_autocast_enabled", *_OF_GPU):
        own = _OF_GPU.get(name, name)
        function = getattr(target.module, own, None)
        if function is not None:
            yield Patch(f"torch.{name}", torch, name, function, f"{target.torch_module}.{own}")


def _default_dtype(target: Target) -> Change:
    """CUDA's autocast computes in float16 unless told otherwise, the CPU's in bfloat16."""
    before = torch.get_autocast_dtype(target.device_type)
    return Action(
        "torch.get_autocast_dtype",
        "float16 by default",
        lambda: torch.set_autocast_dtype(target.device_type, torch.float16),
        lambda: torch.set_autocast_dtype(target.device_type, before),
    )
