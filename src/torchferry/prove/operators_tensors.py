"""What the operator recorder writes of a tensor: its facts, where it lives, and why it could not be read."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.observe.tensors import has_own_operators, memory_of, sizes_of, why_unreadable
from torchferry.prove.facts import tensor_facts

Fact = list[
    Any
]  # [checksum, dtype, shape, norm, projections, on the device, role, memory, why it was not read]


def fact_of(tensor: torch.Tensor, role: str, unread: str = "") -> Fact:
    """The facts of a tensor; where it can't be read, those of its outside. Call it inside `unobserved()`."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    unread = unread or why_unreadable(tensor)
    outside: Fact = [on_device(tensor), role, 0 if has_own_operators(type(tensor)) else memory_of(tensor)]
    if not unread:
        try:
            facts = tensor_facts(tensor)
            return [facts.checksum, dtype, facts.shape, facts.norm, facts.projections, *outside, ""]
        except Exception as error:  # a tensor that we can't read must not end the program
            unread = type(error).__name__
    return ["", dtype, [int(size) for size in sizes_of(tensor)], 0.0, [], *outside, unread]


def on_device(tensor: torch.Tensor) -> bool:
    """Whether the tensor lives on an accelerator."""
    return tensor.device.type not in ("cpu", "meta")
