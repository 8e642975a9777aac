"""Functions whose arguments name CUDA, made to take the target's words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchferry.runtime.target import Target

_DEVICE_TYPES = ("device_type", "device")


def taking_device_type(function: Callable[..., Any], target: Target, position: int) -> Callable[..., Any]:
    """The function, whose argument at a position, or by name, is a device type."""

    @functools.wraps(function)
    def translated(*args: Any, **settings: Any) -> Any:
        if len(args) > position:
            args = (*args[:position], target.device_type_of(args[position]), *args[position + 1 :])
        for name in _DEVICE_TYPES:
            if name in settings:
                settings[name] = target.device_type_of(settings[name])
        return function(*args, **settings)

    return translated
