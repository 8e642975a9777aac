"""What PyTorch's own code takes for "the accelerator": it asks torch.cuda, and then looks for tensors on CUDA."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._utils

from torchferry.runtime.patches import Change, Patch, holders_in_torch
from torchferry.runtime.target import LayerTarget

_ASK = "_get_available_device_type"


def changes(target: LayerTarget) -> Iterator[Change]:
    """The answers name the device that tensors have. A reference's tensors are the CPU's, which is no accelerator."""
    if target.is_reference:
        return
    means = f'"{target.device_type}"'
    ask: Callable[[], str | None] | None = getattr(torch._utils, _ASK, None)
    if ask is not None:
        answer = _available_device_type(ask, target)
        for owner in holders_in_torch(_ASK, ask):
            yield Patch(f"{owner.__name__}.{_ASK}", owner, _ASK, answer, means)
    profile = torch.profiler.profile
    if hasattr(profile, "export_memory_timeline"):
        timeline = _memory_timeline(profile.export_memory_timeline, target)
        name = "torch.profiler.profile.export_memory_timeline"
        yield Patch(name, profile, "export_memory_timeline", timeline, f"of {means}")


def _available_device_type(
    original: Callable[[], str | None], target: LayerTarget
) -> Callable[[], str | None]:
    def _get_available_device_type() -> str | None:
        return target.device_type if target.module.is_available() else original()

    return _get_available_device_type


def _memory_timeline(original: Callable[..., None], target: LayerTarget) -> Callable[..., None]:
    @functools.wraps(original)
    def export_memory_timeline(profile: Any, path: str, device: str | None = None) -> None:
        if device is None and target.module.is_available():
            device = "cuda:0"
        original(profile, path, None if device is None else target.text(device))

    return export_memory_timeline
