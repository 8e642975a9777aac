"""What the reference needs beside torch.cuda: the choices that torch makes for a device, and what the CPU refuses."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.optim import optimizer
from torch.utils import _foreach_utils

from torchferry.runtime.entry_points import wrapped_factories
from torchferry.runtime.patches import Action, Change, Patch, holders_in_torch
from torchferry.runtime.target import LayerTarget

_FOREACH = "_get_foreach_kernels_supported_devices"
_CAPTURABLE = "_get_capturable_supported_devices"
_UNPINNED = "memory is not pinned"
_LOADER_WARNING = "'pin_memory' argument is set as true but no accelerator is found"


def changes(target: LayerTarget) -> Iterator[Change]:
    """Nothing for a vendor's device; it comes after the changes of what makes tensors."""
    if target.is_reference:
        yield from _supported(_FOREACH, _foreach_utils, target, "torch.optim takes its foreach form")
        yield from _supported(_CAPTURABLE, optimizer, target, "optimizers can be capturable")
        yield from _pinning()
        check = "_passing_sync_batchnorm_handle"
        if hasattr(
            DistributedDataParallel, check
        ):  # it refuses what the CPU has no kernels for unless they are added
            name = f"{DistributedDataParallel.__name__}.{check}"
            yield Patch(name, DistributedDataParallel, check, _accept, "takes SyncBatchNorm")
        yield _data_parallel()
        if target.placement is None:
            means = "0: the CPU's number is -1"
            yield Patch("torch.Tensor.get_device", torch.Tensor, "get_device", _get_device, means)
        means = "does nothing: the CPU has no streams"
        yield Patch("torch.Tensor.record_stream", torch.Tensor, "record_stream", _record_stream, means)


def _supported(name: str, home: ModuleType, target: LayerTarget, so: str) -> Iterator[Change]:
    """A list of torch.optim's that has the devices and not the CPU. Of the foreach form: some optimizers round
    differently in it. Wherever torch has imported the function."""
    ask: Callable[..., list[str]] | None = getattr(home, name, None)
    if ask is None:
        return

    @functools.wraps(ask)
    def with_host(*args: Any, **settings: Any) -> list[str]:
        return [*ask(*args, **settings), target.device_type]

    for owner in holders_in_torch(name, ask):
        yield Patch(f"{owner.__name__}.{name}", owner, name, with_host, f"the CPU as well: {so}")


def _pinning() -> Iterator[Change]:
    """Pinned memory needs an accelerator; here it is memory like any other."""
    yield Patch("torch.Tensor.pin_memory", torch.Tensor, "pin_memory", _pin_memory, _UNPINNED)
    for name, function in list(wrapped_factories()):
        yield Patch(f"torch.{name}", torch, name, _unpinned(function), _UNPINNED)
    for name in [name for name in dir(torch.Tensor) if name.startswith("new_")]:
        method = _unpinned(getattr(torch.Tensor, name))
        yield Patch(f"torch.Tensor.{name}", torch.Tensor, name, method, _UNPINNED)

    def silence() -> None:
        warnings.filterwarnings("ignore", message=_LOADER_WARNING)

    def speak() -> None:
        warnings.filters[:] = [  # type: ignore[index]
            entry for entry in warnings.filters if getattr(entry[1], "pattern", entry[1]) != _LOADER_WARNING
        ]

    # A DataLoader that is to pin says that there is no accelerator; the program's output is not to be disturbed.
    yield Action("torch.utils.data.DataLoader", "pins no memory, and does not warn", silence, speak)


def _data_parallel() -> Change:
    """DataParallel compares devices of the CPU with and without a number; where there are none, it calls the module."""
    original = DataParallel.__init__

    @functools.wraps(original)
    def without_devices(self: Any, *args: Any, **settings: Any) -> None:
        original(self, *args, **settings)
        self.device_ids = []

    return Patch(
        "torch.nn.DataParallel", DataParallel, "__init__", without_devices, "calls the module itself"
    )


def _accept(self: Any, module: Any) -> None:
    """Refuse nothing."""


def _get_device(self: torch.Tensor) -> int:
    """The number of a device that a program can name; `is_cuda` is true as well."""
    return 0


def _record_stream(self: torch.Tensor, stream: Any) -> None:
    """Do nothing: memory is freed when nobody uses it."""


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """A copy, as pinning makes one."""
    return self.clone()


def _unpinned(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def made(*args: Any, **settings: Any) -> Any:
        settings.pop("pin_memory", None)
        return function(*args, **settings)

    return made
