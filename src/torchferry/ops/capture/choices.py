"""Lets PyTorch choose on the CPU what it chooses on an accelerator, so that a capture shows what a device will see."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def as_on_device() -> Iterator[None]:
    """Optimizers work on lists of tensors (`_foreach_*`), and dropout is one operator, as on every accelerator."""
    choices = DeviceChoices()
    choices.make()
    try:
        yield
    finally:
        choices.take_back()


class DeviceChoices:
    """The choices; they can be taken back."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def make(self) -> None:
        """From now on."""
        self._list_cpu_among_foreach_devices()
        self._fuse_dropout()

    def take_back(self) -> None:
        """As it was."""
        for owner, name, value in reversed(self._before):
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        self._before.clear()

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    def _list_cpu_among_foreach_devices(self) -> None:
        optimizer = importlib.import_module("torch.optim.optimizer")  # not an attribute of its package
        original = getattr(optimizer, "_get_foreach_kernels_supported_devices", None)
        if original is not None:
            self._replace(optimizer, "_get_foreach_kernels_supported_devices", lambda: [*original(), "cpu"])

    def _fuse_dropout(self) -> None:
        functions: Any = torch._VF
        plain = functions.dropout

        def dropout(tensor: torch.Tensor, p: float, train: bool) -> torch.Tensor:
            if not train or not 0 < p < 1 or not tensor.numel() or not tensor.is_floating_point():
                return plain(tensor, p, train)  # type: ignore[no-any-return]
            return torch.native_dropout(tensor, p, train)[0]

        self._replace(functions, "dropout", dropout)
