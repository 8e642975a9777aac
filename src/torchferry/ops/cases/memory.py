"""Whether a case's tensors fit into memory, and elements laid into memory with given strides."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torchferry.errors import InputError
from torchferry.ops.cases.describing import described
from torchferry.ops.cases.model import TensorInput, contiguous
from torchferry.ops.model import TensorSpec

_COPIES = 4  # at least: what is given, on the CPU and on the device, and twice as wide for the reference


def check_fits(tensors: Sequence[TensorInput], memory: int | None = None) -> None:
    """Refuse tensors that this machine's memory, in bytes, can't hold: trying it would take the machine down."""
    memory = _memory() if memory is None else memory
    sizes = [(TensorSpec(each.dtype, (each.span,)).bytes, described(each)) for each in tensors]
    needed = _COPIES * sum(size for size, _ in sizes)
    if memory and needed > memory:
        size, largest = max(sizes)
        raise InputError(
            f"{largest}: takes {size / 1e9:.3g} GB; with the copies that are compared the case needs at least "
            f"{needed / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g} GB; write smaller sizes"
        )


def _memory() -> int:
    """What is built in; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def overlaps(tensor: TensorInput) -> bool:
    """Whether two elements share a place in memory, other than by a dimension that repeats its first slice."""
    stride = contiguous(tensor.shape) if tensor.stride is None else tensor.stride
    steps = sorted((step, size) for step, size in zip(stride, tensor.shape, strict=True) if step and size > 1)
    reach = 0
    for step, size in steps:
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def laid(elements: Any, tensor: TensorInput) -> Any:
    """A torch tensor's elements in memory as `tensor` says, with zeros between them; it must not overlap."""
    stride = contiguous(tensor.shape) if tensor.stride is None else tensor.stride
    memory = elements.new_zeros(tensor.span)
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)
    memory.as_strided(tensor.shape, stride, tensor.offset)[once] = elements[once]
    return memory
