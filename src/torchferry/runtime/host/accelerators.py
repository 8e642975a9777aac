"""torch.accelerator and torch.get_device_module in the reference: to the program there is an accelerator, CUDA's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import CUDA, LayerTarget

# torch.accelerator's name -> torch.cuda's
_SAME = {
    "current_device_idx": "current_device",
    "current_device_index": "current_device",
    "current_stream": "current_stream",
    "device_count": "device_count",
    "empty_cache": "empty_cache",
    "is_available": "is_available",
    "max_memory_allocated": "max_memory_allocated",
    "max_memory_reserved": "max_memory_reserved",
    "memory_allocated": "memory_allocated",
    "memory_reserved": "memory_reserved",
    "memory_stats": "memory_stats",
    "reset_accumulated_memory_stats": "reset_accumulated_memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
    "set_device_idx": "set_device",
    "set_device_index": "set_device",
    "set_stream": "set_stream",
    "synchronize": "synchronize",
}


def changes(target: LayerTarget, knows: Callable[[str], bool]) -> Iterator[Change]:
    """PyTorch's own code goes on to see a machine without one: it has to take its ways for the CPU."""
    yield Patch(
        "torch.get_device_module", torch, "get_device_module", _get_device_module(), "of cuda torch.cuda"
    )
    accelerator: Any = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    for name, own in _SAME.items():
        if hasattr(accelerator, name):
            function = _for_programs(getattr(accelerator, name), getattr(target.module, own), knows)
            yield Patch(f"torch.accelerator.{name}", accelerator, name, function, f"torch.cuda.{own}")
    if hasattr(accelerator, "current_accelerator"):
        function = _for_programs(accelerator.current_accelerator, lambda *_, **__: torch.device(CUDA), knows)
        name = "current_accelerator"
        yield Patch(f"torch.accelerator.{name}", accelerator, name, function, "cuda")


def _for_programs(original: Callable[..., Any], own: Callable[..., Any], knows: Callable[[str], bool]) -> Any:
    @functools.wraps(original)
    def answered(*args: Any, **settings: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        return (original if knows(caller) else own)(*args, **settings)

    return answered


def _get_device_module() -> Any:
    original = torch.get_device_module

    @functools.wraps(original)
    def get_device_module(device: Any = None) -> Any:
        is_cuda = isinstance(device, str) and device.partition(":")[0] == CUDA
        return torch.cuda if is_cuda else original(device)

    return get_device_module
