"""Memory of the devices: what is held, what was held at most, limits, and raw allocations."""

from __future__ import annotations

import contextlib
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.runtime.device_parts import DeviceMemory, MemoryUse, functions_of
from torchferry.sim import native
from torchferry.sim.device_module.devices import (
    DeviceContext,
    DeviceLike,
    counted_index,
    device_type,
    existing_index,
    identity,
    lazy_init,
)


class MemPool:
    """A pool of memory; the simulated allocator has one pool, so it is only a name."""

    def __init__(self, allocator: object = None, **_: object) -> None:
        self.allocator = allocator
        self.id = (0, id(self))

    def snapshot(self) -> list[dict[str, Any]]:
        """The pool has no segments of its own."""
        return []


class PluggableAllocator:
    """An allocator from a shared library, which the simulated device can't take."""

    def __init__(self, *_: object, **__: object) -> None:
        raise NotImplementedError("the simulated device can't load an allocator for the vendor's device")


class SimulatedMemory(DeviceMemory):
    """What torch.<type>.memory has, from the counters of the compiled half."""

    def __init__(self) -> None:
        # Handed out by address; a storage keeps each alive, so that it is accounted like any other.
        self._storages: dict[int, torch.UntypedStorage] = {}

    def _use(self, device: DeviceLike) -> tuple[int, MemoryUse]:
        index = counted_index(device)
        return index, native.memory_use(index)

    def _title(self, index: int) -> str:
        return f"{device_type().upper()} memory, device {index}"

    def mem_get_info(self, device: DeviceLike = None) -> tuple[int, int]:
        """Free and total bytes of a device."""
        total = identity().total_memory
        return max(0, total - native.memory_use(existing_index(device)).reserved), total

    def reset_peak_memory_stats(self, device: DeviceLike = None) -> None:
        """Let the peaks begin again at what is held now."""
        native.reset_peak_memory(counted_index(device))

    def reset_accumulated_memory_stats(self, device: DeviceLike = None) -> None:
        """Let the counts begin again at zero."""
        native.reset_accumulated_memory(counted_index(device))

    def empty_cache(self) -> None:
        """Give back what is reserved and not allocated."""
        lazy_init()
        native.empty_cache()

    def set_per_process_memory_fraction(self, fraction: float, device: DeviceLike = None) -> None:
        """Let this process have only a part of a device's memory."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        index = counted_index(device)
        native.set_memory_limit(index, int(identity().total_memory * fraction))

    def get_per_process_memory_fraction(self, device: DeviceLike = None) -> float:
        """The part of a device's memory that this process may have."""
        return native.memory_use(counted_index(device)).limit / identity().total_memory

    reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats

    def caching_allocator_alloc(self, size: int, device: DeviceLike = None, stream: object = None) -> int:
        """Allocate bytes on a device; the address."""
        place = torch.device(device_type(), counted_index(device))
        storage: Any = torch.UntypedStorage(size, device=place)  # type: ignore[no-untyped-call]
        address: int = storage.data_ptr()
        self._storages[address] = storage
        return address

    def caching_allocator_delete(self, address: int) -> None:
        """Free memory that caching_allocator_alloc gave."""
        if self._storages.pop(address, None) is None:
            raise RuntimeError(f"{address:#x} was not allocated by caching_allocator_alloc")

    def get_allocator_backend(self) -> str:
        """The name of the allocator."""
        return "native"

    def memory_snapshot(self, mempool_id: object = None) -> list[dict[str, Any]]:
        """One segment for each device that holds memory; single blocks are not listed."""
        uses = [(device, native.memory_use(device)) for device in range(native.device_count())]
        return [
            {
                "device": device,
                "address": 0,
                "total_size": use.reserved,
                "allocated_size": use.allocated,
                "active_size": use.allocated,
                "requested_size": use.allocated,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": [],
            }
            for device, use in uses
            if use.reserved
        ]

    def _snapshot(self, device: DeviceLike = None, **_: object) -> dict[str, Any]:
        """What torch's memory viewer reads; it has no history."""
        return {"segments": self.memory_snapshot(), "device_traces": [], "allocator_settings": {}}

    def _dump_snapshot(self, filename: str = "dump_snapshot.pickle", **_: object) -> None:
        """Write a snapshot to a file."""
        with open(filename, "wb") as file:
            pickle.dump(self._snapshot(), file)

    def _record_memory_history(self, *_: object, **__: object) -> None:
        """Say that no history is kept."""
        warnings.warn("the simulated device keeps no history of allocations", stacklevel=2)

    def change_current_allocator(self, allocator: object) -> None:
        """Refuse another allocator."""
        raise NotImplementedError("the simulated device can't change its allocator")

    def host_memory_stats(self, *_: object, **__: object) -> OrderedDict[str, Any]:
        """Refuse: pinned memory is not counted."""
        raise NotImplementedError("the simulated device doesn't count pinned host memory")

    host_memory_stats_as_nested_dict = host_memory_stats

    def reset_peak_host_memory_stats(self, *_: object, **__: object) -> None:
        """Do nothing: pinned memory is not counted."""

    reset_accumulated_host_memory_stats = reset_peak_host_memory_stats

    @contextlib.contextmanager
    def use_mem_pool(self, pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
        """A block whose allocations belong to a pool: here they come from the one pool there is."""
        with DeviceContext(device):
            yield


_memory = SimulatedMemory()
mem_get_info = _memory.mem_get_info
API = {
    **functions_of(_memory),
    "CUDAPluggableAllocator": PluggableAllocator,
    "MemPool": MemPool,
    "_dump_snapshot": _memory._dump_snapshot,
    "_record_memory_history": _memory._record_memory_history,
    "_snapshot": _memory._snapshot,
}
