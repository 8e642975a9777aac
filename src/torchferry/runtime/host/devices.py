"""CUDA's devices on the CPU: how one is written down, and what knows which tensors are on it.

`cpu:N` is cuda:N, and a number that none has is "cuda" without one. PyTorch takes any number for the CPU, computes on the CPU whatever the number is, and gives none to tensors. So a
`torch.device` that a program made as one of CUDA's can be told from the CPU itself, which has no number.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

UNNUMBERED = 127  # the largest that fits
UNNUMBERED_TEXT = f"cpu:{UNNUMBERED}"
_type: Any = vars(torch.device)["type"].__get__
_index: Any = vars(torch.device)["index"].__get__


def raw_type(device: torch.device) -> str:
    """The type as PyTorch has it."""
    return str(_type(device))


def is_cuda(device: torch.device) -> bool:
    """Whether a program made it as a device of CUDA's."""
    return raw_type(device) == "cpu" and _index(device) is not None


def shown_index(device: torch.device) -> int | None:
    """The number that a program sees."""
    index: int | None = _index(device)
    return None if index == UNNUMBERED and raw_type(device) == "cpu" else index


def shown(device: torch.device) -> str:
    """As a GPU's program writes it: cuda, cuda:1."""
    kind = "cuda" if is_cuda(device) else raw_type(device)
    index = shown_index(device)
    return kind if index is None else f"{kind}:{index}"


class Placement(Protocol):
    """Which tensors would be on a device, in a process in which all are the CPU's. The compiled half keeps the account
    (`sim/reference.py`)."""

    def begin(self) -> None:
        """Keep account from now on: what is computed from a tensor on a device is on it as well."""

    def end(self) -> None:
        """Stop keeping account of tensors."""

    def of(self, tensor: torch.Tensor) -> tuple[bool, int | None]:
        """Whether it has a memory of its own, and the number of the device it is on; None: the host."""

    def of_storage(self, storage: Any) -> int | None:
        """The number of the device that an UntypedStorage is on; None: the host."""

    def put(self, tensor: torch.Tensor, index: int | None) -> None:
        """Say where a tensor is."""

    def put_storage(self, storage: Any, index: int | None) -> None:
        """Say where an UntypedStorage is."""

    def set_current(self, index: int) -> None:
        """Say which device "cuda" without a number means in this thread."""
