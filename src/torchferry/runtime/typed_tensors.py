"""Typed tensors by name: torch.cuda.FloatTensor as a type, as a string, as the default."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.runtime.names import TwoNames
from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.settings import TypeChecks
from torchferry.runtime.target import Target


def changes(target: Target) -> Iterator[Change]:
    """Asking for and changing a tensor's type, and the default type."""
    means = f"torch.cuda.FloatTensor is {target.torch_module}.FloatTensor"
    yield Patch("torch.Tensor.type", torch.Tensor, "type", _type_method(target), means)
    yield Patch(
        "torch.set_default_tensor_type", torch, "set_default_tensor_type", _default_type(target), means
    )


def _type_method(target: Target) -> Any:
    original = torch.Tensor.type
    prefix = target.torch_module + "."
    equals_cuda = target.settings.type_checks is TypeChecks.BOTH

    @functools.wraps(original)
    def type(self: torch.Tensor, dtype: Any = None, *args: Any, **settings: Any) -> Any:  # noqa: A001
        if dtype is not None:
            return original(self, target.tensor_type(dtype), *args, **settings)
        name = original(self)
        if not equals_cuda or not name.startswith(prefix):
            return name
        return TwoNames(name, f"torch.cuda.{name[len(prefix) :]}")

    return type


def _default_type(target: Target) -> Any:
    original = torch.set_default_tensor_type

    @functools.wraps(original)
    def set_default_tensor_type(t: Any, /) -> None:
        original(target.tensor_type(t))

    return set_default_tensor_type
