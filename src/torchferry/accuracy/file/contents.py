"""Bytes of a record as numpy arrays and PyTorch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchferry.accuracy.model import SIZES, TensorRecord
from torchferry.errors import InputError
from torchferry.text import Text

if TYPE_CHECKING:
    import torch

# dtypes that numpy has no name for -> the dtype of their bits
_BITS = {
    "bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8", "complex32": "uint32",
}  # fmt: skip
_LARGE, _TIMES = 1 << 28, 16


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """What holds elements of a dtype of PyTorch's."""
    return np.dtype(_BITS.get(dtype, dtype))


def span(tensor: TensorRecord) -> int:
    """How many elements of memory a tensor takes, from its first to its last."""
    if 0 in tensor.shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride, strict=True))


def as_tensor(data: memoryview, tensor: TensorRecord) -> torch.Tensor:
    """A tensor of its own memory, shape and strides.

    Where it was a small part of a large memory, so that its strides would take much more than its elements do,
    it is contiguous.
    """
    import torch

    dtype = _torch_dtype(tensor)
    needed = span(tensor)
    if needed == 0:
        return torch.empty_strided(tensor.shape, tensor.stride, dtype=dtype)
    try:
        if tensor.is_dense and needed == tensor.elements:
            flat = torch.frombuffer(bytearray(data), dtype=dtype)
            return flat.as_strided(tensor.shape, tensor.stride)
        return _laid(data, tensor, needed, dtype)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise InputError(
            Text(
                f"{tensor.name}: the tensor can't be created: {str(error).splitlines()[0]}",
                f"{tensor.name}：无法创建该张量：{str(error).splitlines()[0]}",
            )
        ) from None


def as_contiguous(values: np.ndarray[Any, Any], tensor: TensorRecord) -> torch.Tensor:
    """A copy of some elements of a tensor, as `shaped` gives them."""
    import torch

    dtype = _torch_dtype(tensor)
    if not values.size:
        return torch.empty(values.shape, dtype=dtype)
    flat = np.array(values, order="C").reshape(-1)
    return torch.from_numpy(flat.view(np.uint8)).view(dtype).reshape(values.shape)


def _torch_dtype(tensor: TensorRecord) -> torch.dtype:
    import torch

    dtype: torch.dtype | None = getattr(torch, tensor.dtype, None)
    if dtype is None:
        raise InputError(
            Text(
                f"{tensor.name}: this PyTorch has no dtype {tensor.dtype}; read it with a newer PyTorch",
                f"{tensor.name}：当前 PyTorch 没有数据类型 {tensor.dtype}；请用更新的 PyTorch 读取",
            )
        )
    return dtype


def _laid(data: memoryview, tensor: TensorRecord, needed: int, dtype: torch.dtype) -> torch.Tensor:
    """Elements that lie by their indices, put where the strides say."""
    import torch

    size = SIZES[tensor.dtype]
    dims = tensor.dims
    if needed * size > _LARGE and needed > _TIMES * tensor.elements:
        once = torch.frombuffer(bytearray(data), dtype=dtype).reshape(dims)
        return once.expand(tensor.shape).contiguous()
    memory = np.zeros(needed, dtype=f"V{size}")
    steps = tuple(step * size for step in tensor.stride)
    places = np.lib.stride_tricks.as_strided(memory, dims, steps)
    places[...] = np.frombuffer(data, dtype=f"V{size}").reshape(dims)
    flat = torch.frombuffer(bytearray(memory.tobytes()), dtype=dtype)
    return flat.as_strided(tensor.shape, tensor.stride)


def shaped(data: np.ndarray[Any, Any], tensor: TensorRecord) -> np.ndarray[Any, Any]:
    """A flat array as Record.array gives it, in the order of the tensor's indices and with its shape."""
    if 0 in tensor.shape:
        return data.reshape(tensor.shape)
    if tensor.is_dense and span(tensor) == tensor.elements:
        steps = tuple(step * data.itemsize for step in tensor.stride)
        return np.lib.stride_tricks.as_strided(data, tensor.shape, steps, writeable=False)
    return np.broadcast_to(data.reshape(tensor.dims), tensor.shape)
