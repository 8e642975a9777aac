"""Statistics of tensors on devices, the same figures as the host's, in their places some time later."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.accuracy.record.fused_statistics import FusedFigures
from torchferry.accuracy.record.layout import TensorLayout
from torchferry.accuracy.record.staged_statistics import StagedFigures


class DeviceStatistics:
    """Of all devices. Where a device has no kernels of ours, or none for some elements, operators do it."""

    def __init__(self) -> None:
        self._fused: dict[str, FusedFigures | None] = {}  # by the device; None: there can't be any
        self._staged: dict[str, StagedFigures] = {}
        self._is_waiting = False  # for a launch
        self._problems: dict[str, str] = {}  # by the device

    @property
    def problems(self) -> tuple[str, ...]:
        """Why kernels of ours could not do it all, for each such device."""
        return tuple(f"{device}: {problem}" for device, problem in self._problems.items())

    def put(self, tensor: torch.Tensor, layout: TensorLayout, row: int) -> None:
        """Read the tensor at the next launch at the latest, and put its figures into the row some time later."""
        device = layout.device
        fused = self._fused[device] if device in self._fused else self._new(tensor.device, device)
        if fused is not None and fused.takes(layout):
            fused.put(tensor, layout, row)
            self._is_waiting = True
            return
        if fused is not None and fused.problem:
            self._problems.setdefault(device, fused.problem)
        staged = self._staged.get(device)
        if staged is None:
            staged = self._staged[device] = StagedFigures(tensor.device)
        staged.put(tensor, layout, row)

    def queue_for(self, tensor: torch.Tensor, layout: TensorLayout) -> Any:
        """What has such tensors read by kernels of ours; None: there are none for them."""
        device = layout.device
        fused = self._fused[device] if device in self._fused else self._new(tensor.device, device)
        return fused.queue if fused is not None and fused.takes(layout) else None

    def drop(self) -> None:
        """Forget what was put and is not read yet."""
        self._is_waiting = False
        for fused in self._fused.values():
            if fused is not None:
                fused.drop()

    def _new(self, device: torch.device, name: str) -> FusedFigures | None:
        try:
            self._fused[name] = FusedFigures(device)
        except Exception as error:  # Triton is not there, or not for this device; it may say so in any way
            self._fused[name] = None
            self._problems[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
        return self._fused[name]

    def launch(self) -> None:
        """Read all that was put, before its memory may be written to again."""
        if self._is_waiting:
            self._is_waiting = False
            for fused in self._fused.values():
                if fused is not None:
                    fused.launch()

    def settle(self) -> None:
        """A step has ended: let the figures come over, without waiting for them where that can be."""
        for fused in self._fused.values():
            if fused is not None:
                fused.settle()
        for staged in self._staged.values():
            staged.fetch()

    def fetch(self) -> None:
        """Fill the rows of all that was read. Waits for the devices."""
        for fused in self._fused.values():
            if fused is not None:
                fused.fetch()
        for staged in self._staged.values():
            staged.fetch()
