"""What PyTorch's operators do to their tensors, as far as schemas and tags say it; which tensors can be read, and why others can't."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

SKIPPED_NAMESPACES = frozenset({"profiler", "prim", "torchferry_sim"})  # they compute nothing
COMMUNICATION = frozenset({"c10d", "_c10d_functional", "c10d_functional"})
# Those whose schemas can be relied on: what they write to is marked there.
_DESCRIBED_NAMESPACES = frozenset(
    {"aten", "prims", "quantized", "_quantized", "torchvision", "mkldnn", "inductor"}
)
_NO_CONTENT = ("empty", "new_empty", "resize", "_resize", "set_")  # their results hold whatever was there
# What these write to is not read by them.
_OVERWRITING = frozenset(
    [
        "copy_",
        "zero_",
        "fill_",
        "bernoulli_",
        "normal_",
        "uniform_",
        "random_",
        "exponential_",
        "geometric_",
        "cauchy_",
        "log_normal_",
        "set_",
        "resize_",
        "_foreach_copy_",
        "_foreach_zero_",
    ]
)
_STATISTICS = ("running_mean", "running_var")
# What these write to is not marked in their schemas.
_UNDECLARED = {
    "native_batch_norm": _STATISTICS,
    "cudnn_batch_norm": _STATISTICS,
    "miopen_batch_norm": _STATISTICS,
    "batch_norm_gather_stats": _STATISTICS,
    "batch_norm_gather_stats_with_counts": _STATISTICS,
    "batch_norm_update_stats": _STATISTICS,
    "rrelu_with_noise": ("noise",),
}


@cache
def find_overload(operator: str) -> Any | None:
    """What is called for aten::add.Tensor; None if this PyTorch has no such operator."""
    library, _, name = operator.partition("::")
    base, _, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, library), base, None)
    return getattr(packet, overload or "default", None) if packet is not None else None


def base_name(func: Any) -> str:
    """The operator's name alone: add_ for aten::add_.Tensor."""
    name: str = func.name()
    return name.split("::")[-1].split(".")[0]


def overwrites(base: str) -> bool:
    """Whether an operator of this name does not read what it writes to."""
    return base in _OVERWRITING


def leaves_uninitialised(base: str) -> bool:
    """Whether the results of an operator of this name hold whatever was in memory."""
    return base.startswith(_NO_CONTENT)


def is_random(func: Any) -> bool:
    """Whether the operator draws from a generator."""
    tag = getattr(torch.Tag, "nondeterministic_seeded", None)
    return tag is not None and tag in func.tags


def may_move(func: Any) -> bool:
    """Whether an operator that writes to a tensor may change its shape or its place in memory as well."""
    tag = getattr(torch.Tag, "inplace_view", None)
    return tag is None or tag in func.tags


def is_view(func: Any) -> bool:
    """Whether a result is an argument's memory, which the operator neither reads nor writes."""
    returns = [result.alias_info for result in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returns) and not written_to(func)


def written_to(func: Any) -> frozenset[str]:
    """The names of the arguments that the operator may write to."""
    declared = [
        argument.name
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    undeclared = _UNDECLARED.get(base_name(func), ()) if func.namespace == "aten" else ()
    return frozenset((*declared, *undeclared))


def is_described(func: Any) -> bool:
    """Whether the schema can be relied on: libraries' operators often write to what it does not say."""
    return func.namespace in _DESCRIBED_NAMESPACES


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
