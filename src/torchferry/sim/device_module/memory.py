"""Memory of the devices: what is held, what was held at most, limits, and raw allocations."""

from __future__ import annotations

import contextlib
import os
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.runtime.module_parts.memory_report import (
    MemoryUse,
    flat_statistics,
    nested_statistics,
    summary,
)
from torchferry.sim import native
from torchferry.sim.device_module.devices import DeviceContext, DeviceLike, existing_index, lazy_init
from torchferry.sim.device_module.identity import device_type, identity


def _use(device: DeviceLike) -> MemoryUse:
    return native.memory_use(existing_index(device))


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors hold on a device."""
    return _use(device).allocated


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that tensors have held on a device."""
    return _use(device).peak_allocated


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that the allocator holds on a device."""
    return _use(device).reserved


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that the allocator has held on a device."""
    return _use(device).peak_reserved


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total bytes of a device."""
    index = existing_index(device)
    total = identity().total_memory
    return max(0, total - native.memory_use(index).reserved), total


def device_memory_used(device: DeviceLike = None) -> int:
    """Bytes of a device that are not free."""
    free, total = mem_get_info(device)
    return total - free


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """All counters of a device, in torch's groups."""
    return nested_statistics(_use(device))


def memory_stats(device: DeviceLike = None) -> OrderedDict[str, Any]:
    """All counters of a device, under torch's dotted names."""
    return flat_statistics(_use(device))


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """A table of a device's counters for people."""
    index = existing_index(device)
    return summary(f"{device_type().upper()} memory, device {index}", native.memory_use(index), abbreviated)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peaks begin again at what is held now."""
    native.reset_peak_memory(existing_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Let the counts begin again at zero."""
    native.reset_accumulated_memory(existing_index(device))


def empty_cache() -> None:
    """Give back what is reserved and not allocated."""
    lazy_init()
    native.empty_cache()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Let this process have only a part of a device's memory."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = existing_index(device)
    native.set_memory_limit(index, int(identity().total_memory * fraction))


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The part of a device's memory that this process may have."""
    return _use(device).limit / identity().total_memory


class _RawAllocations:
    """Memory handed out by address; a storage keeps each alive, so that it is accounted like any other."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}

    def take(self, size: int, device: DeviceLike = None, stream: object = None) -> int:
        """Allocate bytes on a device; the address."""
        place = torch.device(device_type(), existing_index(device))
        storage: Any = torch.UntypedStorage(size, device=place)  # type: ignore[no-untyped-call]
        address: int = storage.data_ptr()
        self._storages[address] = storage
        return address

    def give_back(self, address: int) -> None:
        """Free what take gave."""
        if self._storages.pop(address, None) is None:
            raise RuntimeError(f"{address:#x} was not allocated by caching_allocator_alloc")


_raw = _RawAllocations()


def get_allocator_backend() -> str:
    """The name of the allocator."""
    return "native"


def list_gpu_processes(device: DeviceLike = None) -> str:
    """The processes that use a device: this one, since every process simulates devices of its own."""
    index = existing_index(device)
    used = native.memory_use(index).reserved / 2**20
    return f"GPU:{index}\nprocess {os.getpid():>10d} uses {used:>12.3f} MB GPU memory"


def _segment(device: int) -> dict[str, Any]:
    use = native.memory_use(device)
    return {
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


def memory_snapshot(mempool_id: object = None) -> list[dict[str, Any]]:
    """One segment for each device that holds memory; single blocks are not listed."""
    devices = range(native.device_count())
    return [_segment(device) for device in devices if native.memory_use(device).reserved]


def snapshot(device: DeviceLike = None, **_: object) -> dict[str, Any]:
    """What torch's memory viewer reads; it has no history."""
    return {"segments": memory_snapshot(), "device_traces": [], "allocator_settings": {}}


def dump_snapshot(filename: str = "dump_snapshot.pickle", **_: object) -> None:
    """Write a snapshot to a file."""
    with open(filename, "wb") as file:
        pickle.dump(snapshot(), file)


def record_memory_history(*_: object, **__: object) -> None:
    """Say that no history is kept."""
    warnings.warn("the simulated device keeps no history of allocations", stacklevel=2)


class MemPool:
    """A pool of memory; the simulated allocator has one pool, so it is only a name."""

    def __init__(self, allocator: object = None, **_: object) -> None:
        self.allocator = allocator
        self.id = (0, id(self))

    def snapshot(self) -> list[dict[str, Any]]:
        """The pool has no segments of its own."""
        return []


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
    """A block whose allocations belong to a pool: here they come from the one pool there is."""
    with DeviceContext(device):
        yield


class PluggableAllocator:
    """An allocator from a shared library, which the simulated device can't take."""

    def __init__(self, *_: object, **__: object) -> None:
        raise NotImplementedError("the simulated device can't load an allocator for the vendor's device")


def change_current_allocator(allocator: object) -> None:
    """Refuse another allocator."""
    raise NotImplementedError("the simulated device can't change its allocator")


def host_memory_stats(*_: object, **__: object) -> OrderedDict[str, Any]:
    """Refuse: pinned memory is not counted."""
    raise NotImplementedError("the simulated device doesn't count pinned host memory")


def reset_host_memory_stats(*_: object, **__: object) -> None:
    """Do nothing: pinned memory is not counted."""


API = {
    "CUDAPluggableAllocator": PluggableAllocator,
    "MemPool": MemPool,
    "_dump_snapshot": dump_snapshot,
    "_record_memory_history": record_memory_history,
    "_snapshot": snapshot,
    "caching_allocator_alloc": _raw.take,
    "caching_allocator_delete": _raw.give_back,
    "change_current_allocator": change_current_allocator,
    "device_memory_used": device_memory_used,
    "empty_cache": empty_cache,
    "get_allocator_backend": get_allocator_backend,
    "get_per_process_memory_fraction": get_per_process_memory_fraction,
    "host_memory_stats": host_memory_stats,
    "host_memory_stats_as_nested_dict": host_memory_stats,
    "list_gpu_processes": list_gpu_processes,
    "max_memory_allocated": max_memory_allocated,
    "max_memory_cached": max_memory_reserved,
    "max_memory_reserved": max_memory_reserved,
    "mem_get_info": mem_get_info,
    "memory_allocated": memory_allocated,
    "memory_cached": memory_reserved,
    "memory_reserved": memory_reserved,
    "memory_snapshot": memory_snapshot,
    "memory_stats": memory_stats,
    "memory_stats_as_nested_dict": memory_stats_as_nested_dict,
    "memory_summary": memory_summary,
    "reset_accumulated_host_memory_stats": reset_host_memory_stats,
    "reset_accumulated_memory_stats": reset_accumulated_memory_stats,
    "reset_max_memory_allocated": reset_peak_memory_stats,
    "reset_max_memory_cached": reset_peak_memory_stats,
    "reset_peak_host_memory_stats": reset_host_memory_stats,
    "reset_peak_memory_stats": reset_peak_memory_stats,
    "set_per_process_memory_fraction": set_per_process_memory_fraction,
    "use_mem_pool": use_mem_pool,
}
