"""Typed tensors and storages: torch.<type>.FloatTensor and its like, which old code makes, asks for and sets."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.storage import _LegacyStorage

_TENSORS = {
    "BFloat16Tensor": torch.bfloat16,
    "BoolTensor": torch.bool,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "DoubleTensor": torch.float64,
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "ShortTensor": torch.int16,
}
_STORAGES = {
    "ComplexDoubleStorage": torch.complex128,
    "ComplexFloatStorage": torch.complex64,
    **{name.replace("Tensor", "Storage"): dtype for name, dtype in _TENSORS.items()},
}


class TensorType(type):
    """The type of torch.<type>.FloatTensor: calling it makes a plain tensor, isinstance asks device and dtype."""

    dtype: torch.dtype
    device_type: str

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        # CPython's own name is the full dotted one: that is what Tensor.type() reads from a class
        return super().__name__.rpartition(".")[2]

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.device.type == cls.device_type
            and instance.dtype == cls.dtype
            and instance.layout == torch.strided
        )

    def __call__(cls, *args: Any, device: Any = None) -> torch.Tensor:
        place = cls.device_type if device is None else device
        sizes: tuple[int, ...] = (
            args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args or (0,)
        )
        if all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
            return torch.empty(sizes, dtype=cls.dtype, device=place)
        if len(args) != 1:
            raise TypeError(f"{cls.__module__}.{cls.__name__} takes sizes, a sequence, an array or a tensor")
        if isinstance(args[0], (torch.UntypedStorage, torch.TypedStorage)):
            return torch.empty(0, dtype=cls.dtype, device=args[0].device).set_(args[0])
        return torch.as_tensor(args[0], dtype=cls.dtype).to(place)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def tensor_types(torch_module: str, device_type: str) -> dict[str, TensorType]:
    """The typed tensors of a device, by CUDA's name."""

    def make(name: str, dtype: torch.dtype) -> TensorType:
        body = {"__module__": torch_module, "dtype": dtype, "device_type": device_type}
        return TensorType(f"{torch_module}.{name}", (), body)

    return {name: make(name, dtype) for name, dtype in _TENSORS.items()}


def storage_types(torch_module: str) -> dict[str, type]:
    """The typed storages of a device, by CUDA's name. torch finds the device by the module's name."""

    def make(name: str, dtype: torch.dtype) -> type:
        body = {"__module__": torch_module, "dtype": dtype, "_dtype": dtype}
        return types.new_class(name, (_LegacyStorage,), exec_body=lambda space: space.update(body))

    made = {name: make(name, dtype) for name, dtype in _STORAGES.items()}
    torch._storage_classes.update(made.values())
    return made


class DefaultTensorType:
    """torch.set_default_tensor_type for a torch that knows no typed tensors of this device."""

    def __init__(self, tensors: Mapping[str, TensorType], original: Callable[[Any], None]) -> None:
        self._types = {f"{made.__module__}.{made.__name__}": made for made in tensors.values()}
        self._original = original
        self._device_is_ours = False

    def set(self, t: Any, /) -> None:
        """Set the dtype and the device of new tensors from a typed tensor or its name."""
        chosen = self._types.get(t, t) if isinstance(t, str) else t
        if not isinstance(chosen, TensorType):
            if self._device_is_ours:
                torch.set_default_device(None)
                self._device_is_ours = False
            self._original(chosen)
            return
        if not chosen.dtype.is_floating_point:
            raise TypeError("only floating-point types are supported as the default type")
        torch.set_default_dtype(chosen.dtype)
        torch.set_default_device(chosen.device_type)
        self._device_is_ours = True


def teach_default_tensor_type(tensors: Mapping[str, TensorType]) -> None:
    """Let torch.set_default_tensor_type take the device's typed tensors."""
    torch.set_default_tensor_type = DefaultTensorType(tensors, torch.set_default_tensor_type).set
