"""Which tensors of a program would stay on the host if it ran on a device, told on a machine that has none.

A tensor that a step makes without naming a device, or that the program fetches with `.cpu()`, is the host's, and so is
all that is computed from such tensors alone: lengths of sequences, the step counters of optimizers, grids that are
moved later. `.to(device)` and `.cuda()` make them the device's. One that is made with device="cpu" is undecided until
it is moved, or meets a tensor of the device.
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
from torchferry.readiness.capture.folding import tensors_among
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.capture.undecided import Owner, Undecided, is_the_hosts, owner_of, set_owner

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
        if func in _MOVES and owner_of(args[0]) is not False:
            return _moved(args[0], func(*args, **kwargs), (*args[1:], *kwargs.values()))
        if func in _device_constructors():
            return _made(func, args, kwargs, _owner(kwargs.get("device"), sys._getframe(1)))
        return func(*args, **kwargs)


def _owner(device: Any, caller: FrameType) -> Owner:
    """A program's `device` is "cpu" here as well; PyTorch's own code writes it where it means it, and otherwise has
    the device of a tensor."""
    if device is None or (
        isinstance(device, str) and device == "cpu" and caller.f_code.co_filename.startswith(_PYTORCH)
    ):
        return True
    return Undecided() if torch.device(device).type == "cpu" else False


def _made(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Owner) -> Any:
    mode = active_mode(CapturingMode)
    if mode is None or not mode.where.has_begun or _has_tensor((*args, *kwargs.values())):
        return func(*args, **kwargs)
    before = mode.is_loading_data, mode.making
    mode.is_loading_data = owner is True or mode.is_loading_data
    mode.making = owner if isinstance(owner, Undecided) else None
    try:
        result = func(*args, **kwargs)
    finally:
        mode.is_loading_data, mode.making = before
    set_owner([result], owner)
    return result


def _has_tensor(values: Iterable[Any]) -> bool:
    """`torch.as_tensor(x)` stays where x is."""
    return next(tensors_among(values), None) is not None


def _fetched(tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if result is tensor and not is_the_hosts(tensor):
        result = tensor.view_as(tensor)  # a tensor object of its own: the program may go on with the first
    set_owner([result], True)
    return result


def _moved(tensor: torch.Tensor, result: torch.Tensor, given: Iterable[Any]) -> torch.Tensor:
    """A cast alone leaves a tensor where it is, and `.to(other)` may be meant as one where the place is undecided."""
    if isinstance(owner_of(tensor), Undecided):
        given = [value for value in given if not isinstance(value, torch.Tensor)]
    if not any(map(_is_of_device, given)):
        return result
    result = tensor.view_as(tensor) if result is tensor else result
    mode = active_mode(CapturingMode)
    if mode is not None:
        mode.settle_on_host(tensor)
    set_owner([result], False)
    return result


def _is_of_device(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not is_the_hosts(value)
    return isinstance(value, (torch.device, str)) or type(value) is int
