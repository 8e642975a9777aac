"""Copies tensors of devices into the memory that goes to a record in the background, without waiting for them.

The copies go into the stream in which the program computes: there they come after what has computed the tensor, and
before whatever writes to its memory next, be it an operator in place, or another tensor that gets the memory. The
program runs ahead of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from torchferry.accuracy.file.background import Copy, Waitable
from torchferry.accuracy.record.layout import TensorLayout, flat, staging_for
from torchferry.observe.modes import unobserved

RING = 1 << 28  # bytes; a tensor goes through it in pieces of a quarter


@dataclass(frozen=True)
class HostRing:
    """Memory of the host that devices copy to, and a file is written from."""

    memory: torch.Tensor

    @property
    def address(self) -> int:
        """Where it begins."""
        return self.memory.data_ptr()

    @property
    def nbytes(self) -> int:
        """How large it is."""
        return self.memory.numel()


class DeviceCopies:
    """Of all devices that a program computes on, through one ring."""

    def __init__(self, device: torch.device) -> None:
        """The ring is memory that this device copies to quickly."""
        with unobserved():
            self.ring = HostRing(staging_for(device, RING))
        self._ways: dict[str, _Copying] = {}  # by the device

    def of(self, tensor: torch.Tensor, layout: TensorLayout) -> Copy:
        """What copies the tensor's bytes into the ring, in the order in which they are kept."""
        memory = self.ring.memory
        way = self._ways.get(layout.device)
        if way is None:
            way = self._ways[layout.device] = _Copying(tensor.device, memory)
        with unobserved():
            source = flat(tensor, layout).view(torch.uint8)

        def copy(place: int, start: int, stop: int) -> Waitable | None:
            with unobserved():
                return way.copy(source[start:stop], memory[place : place + stop - start])

        return copy


class _Copying:
    """How a device copies to the host. Where it has no events or no pinned memory, a copy is waited for."""

    def __init__(self, device: torch.device, memory: torch.Tensor) -> None:
        self._device = device
        module: Any = getattr(torch, device.type, None)
        has_events = hasattr(module, "Event") and hasattr(module, "current_stream")
        self._module = module if has_events and memory.is_pinned() else None

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> Waitable | None:
        """Copy the one to the other; what tells when it is there, None if it is."""
        target.copy_(source, non_blocking=self._module is not None)
        if self._module is None:
            return None
        event: Any = self._event()
        event.record(self._module.current_stream(self._device))
        return event  # type: ignore[no-any-return]

    def _event(self) -> Any:
        assert self._module is not None
        try:
            return self._module.Event(blocking=True)  # whoever waits for it leaves the processor to others
        except TypeError:
            return self._module.Event()
