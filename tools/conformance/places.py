"""Samples on another device: the same bytes, strides, offsets, views and shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Place:
    """Where a sample is run."""

    device: torch.device

    def bring(self, tree: Any, with_grad: bool = False) -> Any:
        """A copy of a tree of arguments; what shared memory still does, and nothing is shared with the original."""
        storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        return pytree.tree_map(lambda leaf: self._leaf(leaf, storages, with_grad), tree)

    def _leaf(self, leaf: Any, storages: dict[tuple[int, torch.dtype], torch.Tensor], with_grad: bool) -> Any:
        if isinstance(leaf, torch.Tensor):
            with torch.no_grad():
                moved = self._tensor(leaf, storages)
            return moved.detach().requires_grad_() if with_grad and leaf.requires_grad else moved
        if isinstance(leaf, torch.device) or leaf == "cpu":
            return self.device
        return leaf

    def _tensor(
        self, tensor: torch.Tensor, storages: dict[tuple[int, torch.dtype], torch.Tensor]
    ) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = (storage._cdata, tensor.dtype)
        if key not in storages:
            storages[key] = whole_memory(tensor).to(self.device, copy=True)
        base = storages[key]
        size, stride, offset = tensor.size(), tensor.stride(), tensor.storage_offset()
        if tensor._is_view():
            moved = base.as_strided(size, stride, offset)
        else:
            moved = torch.empty(0, dtype=base.dtype, device=self.device)
            moved.set_(base.untyped_storage(), offset, size, stride)
        moved = moved.conj() if tensor.is_conj() else moved
        return moved._neg_view() if tensor.is_neg() else moved


def whole_memory(tensor: torch.Tensor) -> torch.Tensor:
    """All of a tensor's storage as one row, with what lies before, between and after its elements."""
    storage = tensor.untyped_storage()
    row = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    row.set_(storage, 0, (storage.nbytes() // tensor.element_size(),), (1,))
    return row
