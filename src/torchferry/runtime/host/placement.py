"""What keeps account of which tensors would be on a device. The compiled half does (`sim/reference.py`)."""

from __future__ import annotations

from typing import Any, Protocol

import torch


class Placement(Protocol):
    """Where tensors are, in a process in which all of them are the CPU's."""

    def begin(self) -> None:
        """Keep account from now on: what is computed from a tensor on a device is on it as well."""

    def end(self) -> None:
        """Keep account no longer."""

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
