"""What the operator recorder writes of a tensor: its facts, where it lives, and why it could not be read."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.prove.facts import tensor_facts

Fact = list[
    Any
]  # [checksum, dtype, shape, norm, projections, on the device, role, memory, why it was not read]

UNINITIALISED = "uninitialised"
OVERWRITTEN = "overwritten"


def fact_of(tensor: torch.Tensor, role: str, unread: str = "") -> Fact:
    """The facts of a tensor; where it can't be read, those of its outside. Call it inside `unobserved()`."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    unread = unread or _why_unreadable(tensor)
    outside: Fact = [on_device(tensor), role, 0 if has_own_operators(type(tensor)) else _memory(tensor)]
    if not unread:
        try:
            facts = tensor_facts(tensor)
            return [facts.checksum, dtype, facts.shape, facts.norm, facts.projections, *outside, ""]
        except Exception as error:  # a tensor that we can't read must not end the program
            unread = type(error).__name__
    return ["", dtype, [int(size) for size in _sizes(tensor)], 0.0, [], *outside, unread]


def on_device(tensor: torch.Tensor) -> bool:
    """Whether the tensor lives on an accelerator."""
    return tensor.device.type not in ("cpu", "meta")


def consists_of_others(kind: type) -> bool:
    """Whether tensors of this type hold other tensors, which their operators work on."""
    return has_own_operators(kind) and hasattr(kind, "__tensor_flatten__")


def has_own_operators(kind: type) -> bool:
    """Whether operators on tensors of this type are the type's own; there may be no memory behind it."""
    own = getattr(kind, "__torch_dispatch__", None)
    return own is not None and own is not torch._C._disabled_torch_dispatch_impl


def _why_unreadable(tensor: torch.Tensor) -> str:
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


def _has_memory(tensor: torch.Tensor) -> bool:
    try:
        return tensor.numel() == 0 or (tensor.untyped_storage().nbytes() > 0 and _memory(tensor) != 0)
    except (RuntimeError, NotImplementedError):
        return False


def _memory(tensor: torch.Tensor) -> int:
    """Names the memory that the tensor is a view of; 0 where it has none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


def _sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in tensor.shape)
    except Exception:  # sizes that are symbols, or of nested tensors
        return ()
