"""Memory of the stand-in: nothing is on a device, so all counters are zero; free and total are the host's."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any

from torchferry.runtime.host.devices import Devices, host_memory
from torchferry.runtime.module_parts.memory_report import (
    MemoryUse,
    flat_statistics,
    nested_statistics,
    summary,
)


class HostMemory:
    """The questions about memory, for devices that must exist."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._fraction = 1.0

    def _use(self, device: Any) -> MemoryUse:
        self._devices.existing_index(device)
        return MemoryUse(0, 0, 0, 0, 0, 0, 0, 0, host_memory()[1])

    def nothing_held(self, device: Any = None) -> int:
        """Bytes on a device: none."""
        self._devices.existing_index(device)
        return 0

    def nothing_to_reset(self, device: Any = None) -> None:
        """Let counters begin again: they are zero."""
        self._devices.existing_index(device)

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Free and total bytes of the host."""
        self._devices.existing_index(device)
        return host_memory()

    def device_memory_used(self, device: Any = None) -> int:
        """Bytes of the host that are not free."""
        free, total = self.mem_get_info(device)
        return total - free

    def memory_stats(self, device: Any = None) -> OrderedDict[str, Any]:
        """All counters, under torch's dotted names."""
        return flat_statistics(self._use(device))

    def memory_stats_as_nested_dict(self, device: Any = None) -> dict[str, Any]:
        """All counters, in torch's groups."""
        return nested_statistics(self._use(device))

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """A table of the counters for people."""
        index = self._devices.existing_index(device)
        return summary(f"The CPU in place of CUDA device {index}", self._use(device), abbreviated)

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Remember the part of a device's memory that this process may have; the host is not limited."""
        self._devices.existing_index(device)
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        self._fraction = fraction

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        """What set_per_process_memory_fraction was told last."""
        self._devices.existing_index(device)
        return self._fraction

    def list_gpu_processes(self, device: Any = None) -> str:
        """The processes that use a device: this one."""
        index = self._devices.existing_index(device)
        return f"GPU:{index}\nprocess {os.getpid():>10d} uses {0:>12.3f} MB GPU memory"


def empty_cache() -> None:
    """Give back what is reserved and not allocated: nothing is."""


def memory_snapshot(mempool_id: object = None) -> list[dict[str, Any]]:
    """No segments."""
    return []


def record_memory_history(*_: object, **__: object) -> None:
    """Do nothing: there is no history of a device's memory."""


def names(devices: Devices) -> tuple[dict[str, Any], dict[str, Any]]:
    """The part of torch.cuda that is about memory, and what torch.cuda.memory has."""
    memory = HostMemory(devices)
    held = ("memory_allocated", "memory_cached", "memory_reserved")
    resets = ("accumulated_memory_stats", "max_memory_allocated", "max_memory_cached", "peak_memory_stats")
    own = (
        memory.get_per_process_memory_fraction,
        memory.list_gpu_processes,
        memory.mem_get_info,
        memory.memory_stats,
        memory.memory_stats_as_nested_dict,
        memory.memory_summary,
        memory.set_per_process_memory_fraction,
    )
    both = {
        **dict.fromkeys((*held, *(f"max_{name}" for name in held)), memory.nothing_held),
        **{f"reset_{name}": memory.nothing_to_reset for name in resets},
        **{method.__name__: method for method in own},
        "empty_cache": empty_cache,
        "memory_snapshot": memory_snapshot,
    }
    of_root = {"device_memory_used": memory.device_memory_used}
    return {**both, **of_root}, {**both, "_record_memory_history": record_memory_history}
