"""Devices: who the simulated one says it is, how many there are, which one is current, and what a fork may not do."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from torchferry.runtime import device_parts
from torchferry.sim import native
from torchferry.vendors.model import Vendor

IDENTITY_ATTRIBUTE = "_simulated_identity"


@dataclass(frozen=True)
class Identity:
    """The vendor, what its device is called, and what it answers about itself."""

    vendor: Vendor
    device_name: str
    total_memory: int  # bytes of each device, before any limit that the program sets
    properties: Mapping[str, object]  # fields of get_device_properties beside name and total_memory
    capability_env: str  # variable that holds the answer of get_device_capability, "" when there is none


def device_type() -> str:
    """The type of the device that this process simulates."""
    return torch._C._get_privateuse1_backend_name()


def identity() -> Identity:
    """What the installed module was built from; it lives there, so that nothing here changes at run time."""
    found: Identity = getattr(getattr(torch, device_type()), IDENTITY_ATTRIBUTE)
    return found


class _Fork:
    """Whether this process was forked from one that had used the device."""

    def __init__(self) -> None:
        self.used_before = False
        self.bad = False

    def before(self) -> None:
        """Ask while no other thread can hold the allocator's lock for ever."""
        uses = map(native.memory_use, range(native.device_count()))
        self.used_before = any(use.allocated > 0 or use.allocations > 0 for use in uses)

    def after_in_child(self) -> None:
        """A fork of a fork stays bad. Every operator needs memory for its result: without it none runs."""
        if self.used_before and not self.bad:
            self.bad = True
            native.forbid_memory(fork_refusal())


def fork_refusal() -> str:
    """What to say to a forked process that uses the device."""
    name = device_type().upper()
    return (
        f"Cannot re-initialize {name} in forked subprocess. To use {name} with multiprocessing, "
        "you must use the 'spawn' start method"
    )


_fork = _Fork()


def watch_forks() -> None:
    """Begin to notice forks of this process."""
    os.register_at_fork(before=_fork.before, after_in_child=_fork.after_in_child)


def in_bad_fork() -> bool:
    """Whether this is a fork of a process that had used the device."""
    return _fork.bad


DeviceLike = torch.device | str | int | None


def get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that a device argument means; None and a device without index mean the current one."""
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != device_type():
            raise ValueError(f"Expected a {device_type()} device, but got: {device}")
        return native.current_device() if device.index is None else device.index
    if device is None:
        if not optional:
            raise ValueError(f"Expected a {device_type()} device with a specified index or an integer")
        return native.current_device()
    return int(device)


def existing_index(device: Any) -> int:
    """As get_device_index, for a question about a device that must exist."""
    index = get_device_index(device, optional=True)
    if not _is_there(index):
        raise AssertionError(f"Invalid device id: {index}; there are {native.device_count()} devices")
    return index


def counted_index(device: Any) -> int:
    """As existing_index, for what the allocator is asked: PyTorch's have another error for it."""
    index = get_device_index(device, optional=True)
    if not _is_there(index):
        raise RuntimeError(f"Invalid device argument {index}: did you call init?")
    return index


def _is_there(index: int) -> bool:
    if native.device_count() == 0:
        lazy_init()
    return 0 <= index < native.device_count()


def exchange_device(index: int) -> int:
    """Make a device the current one and answer which one was; a negative index changes nothing."""
    if index < 0:
        return -1
    before = native.current_device()
    if index != before:
        set_device(index)
    return before


class DeviceContext(device_parts.DeviceContext):
    """Makes a device the current one inside a with block; None or a negative index changes nothing."""

    @staticmethod
    def _index(device: Any) -> int:
        return get_device_index(device, optional=True)

    _exchange = staticmethod(exchange_device)


class DeviceOf(DeviceContext):
    """Makes the device of a tensor or storage the current one inside a with block."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == device_type() else -1)


def is_available() -> bool:
    """Whether there is a device."""
    return native.device_count() > 0


def is_initialized() -> bool:
    """Whether the device can be used in this process: always, except in a fork of a process that used it."""
    return not in_bad_fork()


def lazy_init() -> None:
    """Raise in a process that was forked after the device was used, or that sees no device."""
    if in_bad_fork():
        raise RuntimeError(fork_refusal())
    native.begin_use()
    if native.device_count() == 0:
        raise RuntimeError(f"No {device_type().upper()} devices are available")


def lazy_call(call: Any, **_: object) -> None:
    """Call it: the device is ready at once."""
    call()


def current_device() -> int:
    """The index of the current device."""
    lazy_init()
    return native.current_device()


def set_device(device: DeviceLike) -> None:
    """Make a device the current one; a negative index changes nothing."""
    index = get_device_index(device, optional=True)
    if index >= 0:
        lazy_init()
        native.set_device(index)


def get_device_name(device: DeviceLike = None) -> str:
    """What the device is called."""
    existing_index(device)
    return identity().device_name


class DeviceProperties(SimpleNamespace):
    """What get_device_properties answers; a field that the vendor does not list is missing here, too."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"the properties of a {device_type()} device have no field '{name}'")


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Name, memory and the vendor's other fields of a device."""
    existing_index(device)
    own = identity()
    return DeviceProperties(name=own.device_name, total_memory=own.total_memory, **own.properties)


def get_device_capability(device: DeviceLike = None) -> tuple[int, int] | None:
    """Major and minor, where the vendor has such a thing; else None, as the vendor's adapter answers."""
    properties = get_device_properties(device)
    variable = identity().capability_env
    said = os.environ.get(variable, "") if variable else ""
    if said:
        before_dot, _, after_dot = said.partition(".")
        return int(before_dot), int(after_dot or 0)
    major, minor = getattr(properties, "major", None), getattr(properties, "minor", None)
    return None if major is None or minor is None else (int(major), int(minor))


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether one device can read another's memory: all of them share the host's, so yes for two of them."""
    return existing_index(device) != existing_index(peer_device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the vendor's autocast takes bfloat16, and the card has it."""
    vendor = identity().vendor
    return "bfloat16" in vendor.amp_dtypes and "bfloat16" not in vendor.lacks


def is_tf32_supported() -> bool:
    """False: the simulated device computes in full float32."""
    return False


def get_arch_list() -> list[str]:
    """No architectures: nothing is compiled for the simulated device."""
    return []


_load = device_parts.Load()


def utilization(device: DeviceLike = None) -> int:
    """Percent of the time since the last call in which this process computed."""
    existing_index(device)
    return _load.percent()


def ipc_collect() -> None:
    """Do nothing: shared memory is given back with the last tensor over it."""
    lazy_init()


def current_blas_handle() -> int:
    """Zero: there is no BLAS handle behind the simulated device."""
    lazy_init()
    return 0


def sleep(cycles: int) -> None:
    """Wait as long as a 1 GHz device takes for so many cycles."""
    time.sleep(cycles / 1e9)


_sync_debug = device_parts.SyncDebug()

API = {
    "_lazy_init": lazy_init,
    "_sleep": sleep,
    "can_device_access_peer": can_device_access_peer,
    "current_blas_handle": current_blas_handle,
    "current_device": current_device,
    "device": DeviceContext,
    "device_count": native.device_count,
    "device_of": DeviceOf,
    "get_arch_list": get_arch_list,
    "get_device_capability": get_device_capability,
    "get_device_name": get_device_name,
    "get_device_properties": get_device_properties,
    "get_sync_debug_mode": _sync_debug.get,
    "init": lazy_init,
    "ipc_collect": ipc_collect,
    "is_available": is_available,
    "is_bf16_supported": is_bf16_supported,
    "is_initialized": is_initialized,
    "is_tf32_supported": is_tf32_supported,
    "set_device": set_device,
    "set_sync_debug_mode": _sync_debug.set,
    "utilization": utilization,
}

# What torch's own code asks of a device module, whatever the vendor's table says
INTERNAL = {
    "_DeviceGuard": DeviceContext,
    "_exchange_device": exchange_device,
    "_get_device_index": get_device_index,
    "_initialized": True,  # activation checkpointing saves the random state only then
    "_is_in_bad_fork": in_bad_fork,
    "_lazy_call": lazy_call,
    "_lazy_init": lazy_init,
    "_maybe_exchange_device": exchange_device,
}
