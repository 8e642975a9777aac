"""Storage formats, casts and re-arrangements: on the simulated device every tensor is in plain order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_ND = 2
_NCHW = 0
_FORMAT = "_npu_format"  # attribute of a tensor that was cast to a format


def get_npu_format(tensor: Tensor) -> int:
    """The number of the format that a tensor was cast to; else NCHW for four dimensions, ND for others."""
    default = _NCHW if tensor.dim() == 4 else _ND
    return int(getattr(tensor, _FORMAT, default))


def npu_format_cast(tensor: Tensor, acl_format: int | Tensor, **_: Any) -> Tensor:
    """A tensor of the same values that says it has another format."""
    cast = tensor.clone()
    return npu_format_cast_(cast, acl_format)


def npu_format_cast_(tensor: Tensor, acl_format: int | Tensor) -> Tensor:
    """Let a tensor say that it has another format, that of another tensor or a number."""
    wanted = get_npu_format(acl_format) if isinstance(acl_format, Tensor) else int(acl_format)
    setattr(tensor, _FORMAT, wanted)
    return tensor


def empty_with_format(size: Sequence[int], *, acl_format: int = _ND, **settings: Any) -> Tensor:
    """torch.empty, with a format."""
    return npu_format_cast_(torch.empty(size, **settings), acl_format)


def get_storage_size(tensor: Tensor) -> int:
    """How many elements a tensor's storage holds."""
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def npu_change_data_ptr(target: Tensor, source: Tensor, index: int) -> int:
    """Let a tensor lie in another one's memory, from an element on."""
    target.data = torch.as_strided(source, target.size(), target.stride(), index)
    return 0


def npu_dtype_cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Tensor.to(dtype)."""
    return tensor.to(dtype)


def npu_confusion_transpose(
    tensor: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Tensor:
    """A permutation and a reshape in one, in either order."""
    if transpose_first:
        return tensor.permute(*perm).reshape(tuple(shape))
    return tensor.reshape(tuple(shape)).permute(*perm)


def npu_transpose(tensor: Tensor, perm: Sequence[int], require_contiguous: bool = True) -> Tensor:
    """Tensor.permute, in memory order by default."""
    permuted = tensor.permute(*perm)
    return permuted.contiguous() if require_contiguous else permuted


def npu_reshape(tensor: Tensor, shape: Sequence[int], can_refresh: bool = False) -> Tensor:
    """Tensor.reshape."""
    return tensor.reshape(tuple(shape))


def npu_broadcast(tensor: Tensor, size: Sequence[int]) -> Tensor:
    """Tensor.broadcast_to."""
    return tensor.broadcast_to(tuple(size))


def npu_slice(tensor: Tensor, offsets: Sequence[int], size: Sequence[int]) -> Tensor:
    """A box cut out of a tensor."""
    return tensor[tuple(slice(start, start + length) for start, length in zip(offsets, size, strict=True))]


def npu_pad(tensor: Tensor, paddings: Sequence[int]) -> Tensor:
    """Zeros before and after each dimension, the first dimension's pair first."""
    pairs = list(zip(paddings[::2], paddings[1::2], strict=True))
    return torch.nn.functional.pad(tensor, [count for pair in reversed(pairs) for count in pair])


def npu_one_hot(
    indices: Tensor, num_classes: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0
) -> Tensor:
    """One-hot along the last dimension (or the one named by num_classes); indices that are too large hit nothing."""
    classes = torch.arange(depth, device=indices.device, dtype=indices.dtype)
    hit = indices.unsqueeze(-1) == classes
    values = torch.where(hit, float(on_value), float(off_value))
    return values if num_classes == -1 else values.movedim(-1, num_classes)


def npu_sort_v2(tensor: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The sorted values, without their places."""
    return tensor.sort(dim=dim, descending=descending).values


def npu_max(tensor: Tensor, dim: int, keepdim: bool = False) -> Any:
    """torch.max along a dimension; the places are int32, as the card has them."""
    values, places = torch.max(tensor, dim, keepdim)
    return values, places.int()


def npu_min(tensor: Tensor, dim: int, keepdim: bool = False) -> Any:
    """torch.min along a dimension; the places are int32, as the card has them."""
    values, places = torch.min(tensor, dim, keepdim)
    return values, places.int()


def copy_memory_(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Tensor.copy_ between tensors of one dtype and device."""
    if target.dtype != source.dtype or target.device != source.device:
        raise RuntimeError("copy_memory_ takes tensors of the same dtype on the same device")
    return target.copy_(source, non_blocking)


def one_(tensor: Tensor) -> Tensor:
    """Tensor.fill_(1)."""
    return tensor.fill_(1)
