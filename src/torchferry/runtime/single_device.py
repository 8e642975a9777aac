"""torch.nn.DataParallel over one device: that is the module itself. PyTorch's part of it is in CUDA builds only."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import DataParallel

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import LayerTarget

_NAME = "torch.nn.DataParallel"
_MEANS = "over one device: the module itself"


def changes(target: LayerTarget) -> Iterator[Change]:
    """Over several devices it stays what the vendor makes of it; a reference has its own."""
    if target.is_reference:
        return
    made = one_device_or(target.module.device_count, DataParallel.__init__)
    yield Patch(_NAME, DataParallel, "__init__", made, _MEANS)
    yield Patch(f"{_NAME}.scatter", DataParallel, "scatter", moving_to_one(DataParallel.scatter), _MEANS)


def one_device_or(device_count: Callable[[], int], several: Callable[..., None]) -> Callable[..., None]:
    """A constructor that takes one device, and leaves several of them to another one."""
    original = inspect.unwrap(several)  # PyTorch's own

    @functools.wraps(several)
    def make(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        number = device_count() if device_ids is None else len(device_ids)
        chosen = original if number <= 1 else several
        chosen(self, module, device_ids, output_device, dim)

    return make


def moving_to_one(scatter: Callable[..., Any]) -> Callable[..., Any]:
    """As DataParallel, arguments on the host are moved to the device."""
    from torch.distributed.utils import _to_kwargs

    @functools.wraps(scatter)
    def move(self: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Any) -> Any:
        if len(device_ids) != 1:
            return scatter(self, inputs, kwargs, device_ids)
        device = torch.device(self.src_device_obj.type, device_ids[0])
        return _to_kwargs(inputs, kwargs or {}, device, False)

    return move
