"""Which tensors can be read, and why others can't."""

from __future__ import annotations

import torch

UNINITIALISED = "uninitialised"
OVERWRITTEN = "overwritten"


def consists_of_others(kind: type) -> bool:
    """Whether tensors of this type hold other tensors, which their operators work on."""
    return has_own_operators(kind) and hasattr(kind, "__tensor_flatten__")


def has_own_operators(kind: type) -> bool:
    """Whether operators on tensors of this type are the type's own; there may be no memory behind it."""
    own = getattr(kind, "__torch_dispatch__", None)
    return own is not None and own is not torch._C._disabled_torch_dispatch_impl


def why_unreadable(tensor: torch.Tensor) -> str:
    """Reading these would fail, or worse."""
    if tensor.device.type == "meta":
        return "meta"
    is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    if is_wrapped is not None and is_wrapped(tensor):
        return "functorch"
    if has_own_operators(type(tensor)):
        return type(tensor).__name__
    if tensor.layout == torch.strided and not _has_memory(tensor):
        return "no memory"
    if tensor.layout == getattr(torch, "_mkldnn", None):
        return "mkldnn"
    return ""


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """What this process has of a tensor that is distributed over several; any other is all here."""
    part = getattr(tensor, "_local_tensor", None)
    return part if isinstance(part, torch.Tensor) else tensor


def memory_of(tensor: torch.Tensor) -> int:
    """Names the memory that the tensor is a view of; 0 where it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


def sizes_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape; () where it has none that is made of numbers."""
    try:
        return tuple(int(size) for size in tensor.shape)
    except Exception:  # sizes that are symbols, or of nested tensors
        return ()


def _has_memory(tensor: torch.Tensor) -> bool:
    try:
        return tensor.numel() == 0 or (tensor.untyped_storage().nbytes() > 0 and memory_of(tensor) != 0)
    except (RuntimeError, NotImplementedError):
        return False
