"""O1: torch's operators in float16 where that is safe, by torch's own autocast lists, everywhere in the program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ._amp_state import _amp_state

Function = Callable[..., Any]


def enable_casts(device_types: tuple[str, ...]) -> None:
    """Cast from now on. Weights are cast anew at each use: a cache would outlive the optimizer's step."""
    _amp_state.cast_devices = device_types
    torch.set_autocast_cache_enabled(False)
    for device_type in device_types:
        torch.set_autocast_dtype(device_type, torch.float16)
        torch.set_autocast_enabled(device_type, True)


@contextmanager
def disable_casts() -> Iterator[None]:
    """No casts inside the with block."""
    before = {name: torch.is_autocast_enabled(name) for name in _amp_state.cast_devices}
    for name in before:
        torch.set_autocast_enabled(name, False)
    try:
        yield
    finally:
        for name, was_on in before.items():
            torch.set_autocast_enabled(name, was_on)


def half_function(function: Function) -> Function:
    """The function with its float arguments in float16, while casts are on."""
    return _casting(function, lambda _tensors: torch.float16)


def float_function(function: Function) -> Function:
    """The function with its float arguments in float32, while casts are on."""
    return _casting(function, lambda _tensors: torch.float32)


def promote_function(function: Function) -> Function:
    """The function with its float arguments in the widest dtype among them, while casts are on."""
    return _casting(
        function,
        lambda tensors: functools.reduce(
            torch.promote_types, (tensor.dtype for tensor in tensors), torch.float16
        ),
    )


def register_half_function(module: Any, name: str) -> None:
    """Make a module's function a half_function."""
    _register(module, name, half_function)


def register_float_function(module: Any, name: str) -> None:
    """Make a module's function a float_function."""
    _register(module, name, float_function)


def register_promote_function(module: Any, name: str) -> None:
    """Make a module's function a promote_function."""
    _register(module, name, promote_function)


def _register(module: Any, name: str, change: Callable[[Function], Function]) -> None:
    if not hasattr(module, name):
        raise ValueError(f"No function named {name} in module {module}.")
    setattr(module, name, change(getattr(module, name)))


def _casting(function: Function, choose: Callable[[list[torch.Tensor]], torch.dtype]) -> Function:
    @functools.wraps(function)
    def cast(*args: Any, **settings: Any) -> Any:
        if not any(torch.is_autocast_enabled(name) for name in _amp_state.cast_devices):
            return function(*args, **settings)
        dtype = choose([value for value in (*args, *settings.values()) if _is_float(value)])
        with disable_casts():
            return function(
                *(to_dtype(value, dtype) for value in args),
                **{name: to_dtype(value, dtype) for name, value in settings.items()},
            )

    return cast


def to_dtype(value: Any, dtype: torch.dtype) -> Any:
    """Float tensors in a dtype, in whatever lists, tuples and dicts they come."""
    if _is_float(value):
        return value.to(dtype)
    if isinstance(value, dict):
        return type(value)((key, to_dtype(entry, dtype)) for key, entry in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_dtype(entry, dtype) for entry in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_dtype(entry, dtype) for entry in value)
    return value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
