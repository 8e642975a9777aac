"""Which tensors of a program would stay on the host if it ran on a device, told on a machine that has none.

A tensor that a step makes without naming a device, or that the program fetches with `.cpu()`, is the host's, and so is
all that is computed from such tensors alone: lengths of sequences, the step counters of optimizers, grids that are
moved later. `.to(device)` and `.cuda()` make them the device's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from torchferry.observe.modes import active_mode
from torchferry.ops.capture.mode import CapturingMode
from torchferry.ops.capture.values import is_the_hosts, make_the_hosts, tensors_among

_PYTORCH = f"{Path(torch.__file__).parent}{os.sep}"
_MOVES = frozenset({torch.Tensor.to, torch.Tensor.cuda})


class HostTensors(TorchFunctionMode):
    """Tells a capturing mode of them while it is on."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cpu:
            return _fetched(args[0], func(*args, **kwargs))
        if func in _MOVES and is_the_hosts(args[0]):
            return _moved(args[0], func(*args, **kwargs), (*args[1:], *kwargs.values()))
        if func in _device_constructors() and _means_the_host(kwargs.get("device"), sys._getframe(1)):
            return _made(func, args, kwargs)
        return func(*args, **kwargs)


def _means_the_host(device: Any, caller: FrameType) -> bool:
    """A program's `device` is "cpu" here as well; PyTorch's own code writes it where it means it."""
    return device is None or (device == "cpu" and caller.f_code.co_filename.startswith(_PYTORCH))


def _made(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mode = active_mode(CapturingMode)
    if mode is None or not mode.where.has_begun or _has_tensor((*args, *kwargs.values())):
        return func(*args, **kwargs)
    before, mode.is_loading_data = mode.is_loading_data, True
    try:
        result = func(*args, **kwargs)
    finally:
        mode.is_loading_data = before
    make_the_hosts([result])
    return result


def _has_tensor(values: Iterable[Any]) -> bool:
    """`torch.as_tensor(x)` stays where x is."""
    return next(tensors_among(values), None) is not None


def _fetched(tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if result is tensor and not is_the_hosts(tensor):
        result = tensor.view_as(tensor)  # a tensor object of its own: the program may go on with the first
    make_the_hosts([result])
    return result


def _moved(tensor: torch.Tensor, result: torch.Tensor, given: Iterable[Any]) -> torch.Tensor:
    """A cast alone leaves a tensor where it is."""
    if not any(map(_is_of_device, given)):
        return result
    result = tensor.view_as(tensor) if result is tensor else result
    make_the_hosts([result], False)
    return result


def _is_of_device(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not is_the_hosts(value)
    return isinstance(value, (torch.device, str)) or type(value) is int
