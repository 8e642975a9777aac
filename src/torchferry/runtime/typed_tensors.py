"""Typed tensors by name: torch.cuda.FloatTensor as a type, as a string, as the default."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.settings import TypeChecks
from torchferry.runtime.target import LayerTarget, TwoNames

_CUDA = "torch.cuda."


def changes(target: LayerTarget) -> Iterator[Change]:
    """Asking for and changing a tensor's type, and the default type."""
    means = f"torch.cuda.FloatTensor is {target.torch_module}.FloatTensor"
    of_reference = target.placement is not None
    method = _type_of_reference() if of_reference else _type_method(target)
    default = _default_of_reference() if of_reference else _default_type(target)
    yield Patch("torch.Tensor.type", torch.Tensor, "type", method, means)
    yield Patch("torch.set_default_tensor_type", torch, "set_default_tensor_type", default, means)


def _type_method(target: LayerTarget) -> Any:
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


def _type_of_reference() -> Any:
    original = torch.Tensor.type

    @functools.wraps(original)
    def type(self: torch.Tensor, dtype: Any = None, *args: Any, **settings: Any) -> Any:  # noqa: A001
        if dtype is None:
            name = original(self)
            is_plain = self.is_cuda and not name.startswith(_CUDA)
            return name.replace("torch.", _CUDA, 1) if is_plain else name
        kind, is_cuda = host_type(dtype)
        result = original(self, kind, *args, **settings)
        return result if is_cuda is None else result.cuda() if is_cuda else result.cpu()

    return type


def _default_of_reference() -> Any:
    """The type, and where tensors are made that name no device."""
    original = torch.set_default_tensor_type

    @functools.wraps(original)
    def set_default_tensor_type(t: Any, /) -> None:
        kind, is_cuda = host_type(t)
        original(kind)
        torch.set_default_device("cuda" if is_cuda else None)

    return set_default_tensor_type


def _default_type(target: LayerTarget) -> Any:
    original = torch.set_default_tensor_type

    @functools.wraps(original)
    def set_default_tensor_type(t: Any, /) -> None:
        original(target.tensor_type(t))

    return set_default_tensor_type


class _CudaType(type):
    """Of torch.cuda.FloatTensor: a tensor is one if it is on a device."""

    of_host: Any

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.of_host) and bool(value.is_cuda)


def types_of_reference(told_apart: bool) -> dict[str, Any]:
    """Typed tensors and storages of the reference, by name: the CPU's. Only where tensors on a device can be told from
    the host's are CUDA's types others than these."""
    kinds = [
        name for name in vars(torch.cuda) if name.endswith(("Tensor", "Storage")) and hasattr(torch, name)
    ]
    return {
        name: _tensor_type(name) if told_apart and name.endswith("Tensor") else getattr(torch, name)
        for name in kinds
    }


def _tensor_type(name: str) -> _CudaType:
    of_host = getattr(torch, name)

    def new(cls: type, *args: Any, **settings: Any) -> torch.Tensor:
        made: torch.Tensor = of_host(*args, **settings).cuda()
        return made

    return _CudaType(name, (), {"__new__": new, "__module__": "torch.cuda", "of_host": of_host})


def host_type(kind: Any) -> tuple[Any, bool | None]:
    """A typed tensor, by its class or its name, as the CPU's, and whether it is one of CUDA's; None: no typed tensor."""
    if isinstance(kind, _CudaType):
        return kind.of_host, True
    if isinstance(kind, str) and kind.endswith("Tensor"):
        return kind.replace("torch.cuda.", "torch.", 1), kind.startswith("torch.cuda.")
    return kind, False if isinstance(kind, type) else None
