"""What a device says of itself, completed by what CUDA programs read: capability, properties, bfloat16."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.backends import cudnn

from torchferry.runtime.cuda_gaps import NOT_HERE, absent
from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import LayerTarget

# Programs choose bfloat16 and fused paths by this number of CUDA's; a vendor's own one counts something else.
_CAPABILITY = "8.0"
_SMALLEST = {"multi_processor_count": 1, "warp_size": 32}  # for programs that size a launch by them


def in_front_of(target: LayerTarget) -> dict[str, tuple[Callable[..., Any], str]]:
    """Functions that ask the vendor's first and fill in what it leaves out, by CUDA's name."""
    traits = _Traits(target)
    major, minor = traits.capability
    return {
        "torch.cuda.get_device_capability": (
            traits.get_device_capability,
            f"({major}, {minor})",
        ),
        "torch.cuda.get_device_properties": (
            traits.get_device_properties,
            "the vendor's, with the fields that CUDA programs read",
        ),
        "torch.cuda.is_bf16_supported": (traits.is_bf16_supported, "the vendor's"),
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


class _Traits:
    """The answers for one target."""

    def __init__(self, target: LayerTarget) -> None:
        self._target = target
        major, _, minor = (target.settings.capability or _CAPABILITY).partition(".")
        self.capability = int(major), int(minor)

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Major and minor: what the user said, else those of a GPU that has bfloat16."""
        return self.capability

    def get_device_properties(self, device: Any = None) -> Properties:
        """The vendor's properties under CUDA's names."""
        own = self._target.module.get_device_properties(device)
        major, minor = self.capability
        return Properties(own, {"major": major, "minor": minor})

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether the vendor takes bfloat16."""
        ask = getattr(self._target.module, "is_bf16_supported", None)
        if ask is not None:
            return bool(ask())
        return self._target.vendor is None or "bfloat16" in self._target.vendor.amp_dtypes


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
