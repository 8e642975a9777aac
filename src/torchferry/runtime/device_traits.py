"""What a device says of itself, completed by what CUDA programs read: capability, properties, bfloat16, version; and
which device PyTorch takes for the accelerator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch._utils
from torch.backends import cudnn

from torchferry.runtime.cuda_gaps import NOT_HERE, absent
from torchferry.runtime.patches import Change, Patch, holders_in_torch
from torchferry.runtime.target import LayerTarget

# Programs choose bfloat16 and fused paths by this number of CUDA's; a vendor's own one counts something else.
_CAPABILITY = "8.0"
_ACCELERATOR = "_get_available_device_type"
_SMALLEST = {"multi_processor_count": 1, "warp_size": 32}  # for programs that size a launch by them


def in_front_of(target: LayerTarget) -> dict[str, tuple[Callable[..., Any], str]]:
    """Functions that ask the vendor's first and fill in what it leaves out, by CUDA's name."""
    # what the user said, else that of a GPU that has bfloat16
    major, minor = map(int, (target.settings.capability or _CAPABILITY).split("."))

    def get_device_capability(device: Any = None) -> tuple[int, int]:
        return major, minor

    def get_device_properties(device: Any = None) -> Properties:
        return Properties(target.module.get_device_properties(device), {"major": major, "minor": minor})

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        ask = getattr(target.module, "is_bf16_supported", None)
        if ask is not None:
            return bool(ask())
        return target.vendor is None or "bfloat16" in target.vendor.amp_dtypes

    return {
        "torch.cuda.get_device_capability": (get_device_capability, f"({major}, {minor})"),
        "torch.cuda.get_device_properties": (
            get_device_properties,
            "the vendor's, plus the fields that CUDA programs read",
        ),
        "torch.cuda.is_bf16_supported": (is_bf16_supported, "the vendor's"),
    }


class Properties:
    """A vendor's device properties, with CUDA's capability and the fields of CUDA's that the vendor leaves out."""

    def __init__(self, own: Any, capability: Mapping[str, int]) -> None:
        self._own = own
        self._capability = capability

    def __getattr__(self, name: str) -> Any:
        if name in self._capability:
            return self._capability[name]
        value = getattr(self._own, name, None)
        if value is None and name in _SMALLEST:
            return _SMALLEST[name]
        return getattr(self._own, name) if value is None else value

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._own), *self._capability, *_SMALLEST})

    def __repr__(self) -> str:
        return repr(self._own)


# torch.version.cuda, for libraries that will not look at a device before they have seen it.

# torch._dynamo.reset, for one, imports a module that takes these classes.
_TAKEN_WHERE_CUDA_IS_BUILT = ("_cuda_CUDAAllocator_AllocatorState",)


def changes(target: LayerTarget) -> Iterator[Change]:
    """The version, if the user asked for one; that CUDA is built in, which it stands for; that cuDNN has no say."""
    said = target.settings.cuda_version
    if said:
        yield Patch("torch.version.cuda", torch.version, "cuda", said, f'"{said}"')
    yield Patch("torch.backends.cuda.is_built", torch.backends.cuda, "is_built", lambda: True, "true")
    # Recurrent layers ask it for every weight that is on a GPU, and without cuDNN it warns.
    yield Patch("torch.backends.cudnn.is_acceptable", cudnn, "is_acceptable", lambda tensor: False, "false")
    for name in _TAKEN_WHERE_CUDA_IS_BUILT:
        if not hasattr(torch._C, name):
            full = f"torch._C.{name}"
            yield Patch(full, torch._C, name, absent(full, object, target), NOT_HERE)


def accelerator_changes(target: LayerTarget) -> Iterator[Change]:
    """What PyTorch's own code takes for "the accelerator": it asks torch.cuda, and then looks for tensors on CUDA. The
    answers name the device that tensors have; a reference's tensors are the CPU's, which is no accelerator."""
    if target.is_reference:
        return
    means = f'"{target.device_type}"'
    ask: Callable[[], str | None] | None = getattr(torch._utils, _ACCELERATOR, None)
    if ask is not None:

        def _get_available_device_type() -> str | None:
            return target.device_type if target.module.is_available() else ask()

        for owner in holders_in_torch(_ACCELERATOR, ask):
            yield Patch(
                f"{owner.__name__}.{_ACCELERATOR}", owner, _ACCELERATOR, _get_available_device_type, means
            )
    profile = torch.profiler.profile
    if hasattr(profile, "export_memory_timeline"):
        original: Callable[..., None] = profile.export_memory_timeline

        @functools.wraps(original)
        def export_memory_timeline(profile: Any, path: str, device: str | None = None) -> None:
            if device is None and target.module.is_available():
                device = "cuda:0"
            original(profile, path, None if device is None else target.text(device))

        name = "torch.profiler.profile.export_memory_timeline"
        yield Patch(name, profile, "export_memory_timeline", export_memory_timeline, f"of {means}")
