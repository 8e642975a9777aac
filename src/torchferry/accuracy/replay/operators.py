"""Finds the operator of a recorded call, and what its schema says of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from torchferry.observe import operators as observed


@cache
def find_overload(operator: str) -> Any | None:
    """What is called for aten::add.Tensor; None if this PyTorch has no such operator."""
    library, _, name = operator.partition("::")
    base, _, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, library), base, None)
    return getattr(packet, overload or "default", None) if packet is not None else None


def base_name(operator: str) -> str:
    """aten::add for aten::add.Tensor."""
    return operator.partition(".")[0]


@cache
def written_arguments(operator: str) -> frozenset[str]:
    """The names of the arguments that it changes."""
    overload = find_overload(operator)
    return observed.written_to(overload) if overload is not None else frozenset()


@cache
def is_random(operator: str) -> bool:
    """Whether it draws random numbers."""
    overload = find_overload(operator)
    return overload is not None and observed.is_random(overload)


@cache
def is_view(operator: str) -> bool:
    """Whether its result is the memory of an argument."""
    overload = find_overload(operator)
    return overload is not None and observed.is_view(overload)


def leaves_uninitialised(operator: str) -> bool:
    """Whether its results hold whatever was in memory."""
    return observed.leaves_uninitialised(base_name(operator).partition("::")[2])


@cache
def argument_types(operator: str) -> dict[str, str]:
    """name -> type, as PyTorch writes it: Tensor, number, Optional[float], ScalarType ..."""
    overload = find_overload(operator)
    if overload is None:
        return {}
    return {argument.name: str(argument.real_type) for argument in overload._schema.arguments}
