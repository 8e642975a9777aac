"""Devices of the stand-in: how many the CPU stands for, which one is current in a thread, what one is like."""

from __future__ import annotations

import os
import platform
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from torchferry.runtime.host import device_numbers
from torchferry.runtime.module_parts import devices as shared

_UNNUMBERED = str(device_numbers.UNNUMBERED)


@dataclass(frozen=True)
class DeviceProperties:
    """What get_device_properties answers: the host."""

    name: str
    total_memory: int
    multi_processor_count: int
    is_integrated: int = 1
    is_multi_gpu_board: int = 0


def host_memory() -> tuple[int, int]:
    """Bytes of the host: those that a program can still get, and all."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return page * os.sysconf("SC_AVPHYS_PAGES"), total
    available = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    return int(available) * 1024, total


class _CurrentDevice(threading.local):
    """The current device of a thread."""

    index = 0


class Devices:
    """The devices that a program sees; all of them are the CPU."""

    def __init__(self, count: int, placement: Placement | None = None) -> None:
        self._count = count
        self._placement = placement
        self._current = _CurrentDevice()
        self._load = shared.Load()
        self.sync_debug = shared.SyncDebug()

    def is_available(self) -> bool:
        """Whether there is a device."""
        return self._count > 0

    def device_count(self) -> int:
        """How many devices there are."""
        return self._count

    def current_device(self) -> int:
        """The index of this thread's current device."""
        return self._current.index

    def set_device(self, device: Any) -> None:
        """Make a device the current one of this thread; a negative index changes nothing."""
        index = self.get_device_index(device)
        if index >= self._count:
            raise RuntimeError(f"invalid device ordinal: {index}; there are {self._count} devices")
        if index >= 0:
            self._current.index = index
            if self._placement is not None:
                self._placement.set_current(index)

    def exchange_device(self, index: int) -> int:
        """Make a device the current one and answer which one was; a negative index changes nothing."""
        if index < 0:
            return -1
        before = self._current.index
        self.set_device(index)
        return before

    def maybe_exchange_device(self, index: int) -> int:
        """The same: there is no context to be made. Dynamo wants it to be another function."""
        return self.exchange_device(index)

    def get_device_index(self, device: Any, optional: bool = True, allow_cpu: bool = False) -> int:
        """The index that a device argument means; None and a device without index mean the current one.

        The CPU as such is no device of CUDA's: it has no index, those that a program made as CUDA's have one.
        """
        if device is None and optional:
            return self._current.index
        if isinstance(device, int):
            return device
        kind, _, number = str(device).partition(":")  # torch.compile takes this apart: only plain words
        if kind == "cuda" or (kind == "cpu" and number):
            return self._current.index if number in ("", _UNNUMBERED) else int(number)
        if kind == "cpu" and allow_cpu:
            return -1
        raise ValueError(f"Expected a cuda device, but got: {device}")

    def existing_index(self, device: Any) -> int:
        """As get_device_index, for a question about a device that must exist."""
        index = self.get_device_index(device)
        if not 0 <= index < self._count:
            raise AssertionError(f"Invalid device id: {index}; there are {self._count} devices")
        return index

    def get_device_name(self, device: Any = None) -> str:
        """What the device is called."""
        return self.get_device_properties(device).name

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        """Name, memory and cores of the host."""
        self.existing_index(device)
        return DeviceProperties(
            platform.processor() or platform.machine(), host_memory()[1], os.cpu_count() or 1
        )

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Whether one device can read another's memory: it is the same memory, so yes for two of them."""
        return self.existing_index(device) != self.existing_index(peer_device)

    def utilization(self, device: Any = None) -> int:
        """Percent of the time since the last call in which this process computed."""
        self.existing_index(device)
        return self._load.percent()

    def synchronize(self, device: Any = None) -> None:
        """Wait for all work of a device: it is done already."""
        self.existing_index(device)


def is_initialized() -> bool:
    """True: there is nothing to prepare."""
    return True


def is_in_bad_fork() -> bool:
    """False: the CPU can be used in a forked process."""
    return False


def lazy_init() -> None:
    """There is nothing to prepare."""


def lazy_call(call: Any, **_: object) -> None:
    """Call it: the device is ready at once."""
    call()


def names(devices: Devices) -> dict[str, Any]:
    """The part of torch.cuda that is about devices."""

    class DeviceContext(shared.DeviceContext):
        """Makes a device the current one inside a with block; None or a negative index changes nothing."""

        _index = staticmethod(devices.get_device_index)
        _exchange = staticmethod(devices.exchange_device)

    class DeviceOf(DeviceContext):
        """A with block for the device of a tensor: all are where they are."""

        def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
            super().__init__(None)

    return {
        "_DeviceGuard": DeviceContext,
        "_exchange_device": devices.exchange_device,
        "_get_device_index": devices.get_device_index,
        "_initialized": True,
        "_is_in_bad_fork": is_in_bad_fork,
        "_lazy_call": lazy_call,
        "_lazy_init": lazy_init,
        "_maybe_exchange_device": devices.maybe_exchange_device,
        "can_device_access_peer": devices.can_device_access_peer,
        "current_device": devices.current_device,
        "device": DeviceContext,
        "device_count": devices.device_count,
        "device_of": DeviceOf,
        "get_device_name": devices.get_device_name,
        "get_device_properties": devices.get_device_properties,
        "get_sync_debug_mode": devices.sync_debug.get,
        "init": lazy_init,
        "is_available": devices.is_available,
        "is_initialized": is_initialized,
        "set_device": devices.set_device,
        "set_sync_debug_mode": devices.sync_debug.set,
        "synchronize": devices.synchronize,
        "utilization": devices.utilization,
    }


# What keeps account of which tensors would be on a device. The compiled half does (`sim/reference.py`).


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
