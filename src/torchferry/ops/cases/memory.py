"""Elements laid into memory with given strides."""

from __future__ import annotations

from typing import Any

from torchferry.ops.cases.model import TensorInput, contiguous


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
