"""A process's own part of the summary of an emulated run, by the counters of the vendor's plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from torchferry.emulate.activation import active
from torchferry.sim import summary
from torchferry.sim.summary import MISSING, DeviceUse, OperatorCount, SimulatedProcess

_CALLED = "kernel"


def report_at_exit(folder: Path) -> None:
    """As for a simulated device, of which this is the other way of counting."""
    summary.report_at_exit(folder, collect)


def collect() -> SimulatedProcess | None:
    """What this process has used so far; None if it never touched the device."""
    now = active()
    if now is None:
        return None
    devices = _devices(getattr(torch, now.vendor.device_type), now.settings.memory)
    operators = tuple(
        OperatorCount(use.name, use.calls, MISSING if use.is_missing else _CALLED)
        for use in now.libraries.uses()
    )
    return summary.used_by_this_process(devices, operators)


def _devices(module: Any, limit: int) -> tuple[DeviceUse, ...]:
    """A process that was forked from one with a device can't ask for it, nor has it used it."""
    is_forked = getattr(module, "_is_in_bad_fork", lambda: False)()
    if is_forked or not module.is_initialized():
        return ()
    stats = map(module.memory_stats, range(module.device_count()))
    uses = [
        DeviceUse(
            index=index,
            peak_allocated=used.get("allocated_bytes.all.peak", 0),
            peak_reserved=used.get("reserved_bytes.all.peak", 0),
            limit=limit,
            allocations=used.get("allocation.all.allocated", 0),
            out_of_memory=used.get("num_ooms", 0),
        )
        for index, used in enumerate(stats)
    ]
    return tuple(use for use in uses if use.allocations or use.out_of_memory)
