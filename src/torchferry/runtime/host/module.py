"""torch.cuda for a process in which CUDA means the CPU: the original of a proof runs on it, unchanged.

All of CUDA's devices are the CPU, and all randomness is its default generator's. What asks for hardware has no
counterpart here: the layer lets those names raise, and answers the neutral ones (nvtx, cudart, capability) itself.
The CPU computes at once, so all work of a stream is done when a call returns; nothing is on a device, so all counters
of memory are zero.
"""

from __future__ import annotations

import itertools
import os
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from torchferry.errors import RunError
from torchferry.runtime import device_parts, graphs
from torchferry.runtime.host.devices import UNNUMBERED, Placement
from torchferry.runtime.typed_tensors import types_of_reference
from torchferry.text import Text

_NAME = "torch.cuda on the CPU"
_HOST = torch.device("cpu", 0)


@dataclass(frozen=True)
class DeviceProperties:
    """What get_device_properties answers: the host."""

    name: str
    total_memory: int
    multi_processor_count: int
    is_integrated: int = 1
    is_multi_gpu_board: int = 0


def _whole_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def host_memory() -> tuple[int, int]:
    """Bytes of the host: those that a program can still get, and all."""
    page, total = os.sysconf("SC_PAGE_SIZE"), _whole_memory()
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return page * os.sysconf("SC_AVPHYS_PAGES"), total
    available = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    return int(available) * 1024, total


class _CurrentDevice(threading.local):
    index = 0


class Devices:
    """The devices that a program sees; all of them are the CPU."""

    def __init__(self, count: int, placement: Placement | None = None) -> None:
        self._count = count
        self._placement = placement
        self._current = _CurrentDevice()
        self._load = device_parts.Load()

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
        index = self._get_device_index(device)
        if index >= self._count:
            raise RuntimeError(f"invalid device ordinal: {index}; there are {self._count} devices")
        if index >= 0:
            self._current.index = index
            if self._placement is not None:
                self._placement.set_current(index)

    def _exchange_device(self, index: int) -> int:
        """Make a device the current one and answer which one was; a negative index changes nothing."""
        if index < 0:
            return -1
        before = self._current.index
        self.set_device(index)
        return before

    def _maybe_exchange_device(self, index: int) -> int:
        """The same: there is no context to be made. Dynamo wants it to be another function."""
        return self._exchange_device(index)

    def _get_device_index(self, device: Any, optional: bool = True, allow_cpu: bool = False) -> int:
        """The index that a device argument means; None and a device without index mean the current one.

        The CPU as such is no device of CUDA's: it has no index, those that a program made as CUDA's have one.
        """
        if device is None and optional:
            return self._current.index
        if isinstance(device, int):
            return device
        kind, _, number = str(device).partition(":")  # torch.compile takes this apart: only plain words
        if kind == "cuda" or (kind == "cpu" and number):
            return self._current.index if number in ("", str(UNNUMBERED)) else int(number)
        if kind == "cpu" and allow_cpu:
            return -1
        raise ValueError(f"Expected a cuda device, but got: {device}")

    def _existing_index(self, device: Any) -> int:
        """As _get_device_index, for a question about a device that must exist."""
        index = self._get_device_index(device)
        if not 0 <= index < self._count:
            raise AssertionError(f"Invalid device id: {index}; there are {self._count} devices")
        return index

    def get_device_name(self, device: Any = None) -> str:
        """What the device is called."""
        return self.get_device_properties(device).name

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        """Name, memory and cores of the host."""
        self._existing_index(device)
        return DeviceProperties(
            platform.processor() or platform.machine(), _whole_memory(), os.cpu_count() or 1
        )

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Whether one device can read another's memory: it is the same memory, so yes for two of them."""
        return self._existing_index(device) != self._existing_index(peer_device)

    def utilization(self, device: Any = None) -> int:
        """Percent of the time since the last call in which this process computed."""
        self._existing_index(device)
        return self._load.percent()

    def synchronize(self, device: Any = None) -> None:
        """Wait for all work of a device: it is done already."""
        self._existing_index(device)


def lazy_init() -> None:
    """There is nothing to prepare."""


def lazy_call(call: Any, **_: object) -> None:
    """Call it: the device is ready at once."""
    call()


def _device_names(devices: Devices) -> dict[str, Any]:

    class DeviceContext(device_parts.DeviceContext):
        _index = staticmethod(devices._get_device_index)
        _exchange = staticmethod(devices._exchange_device)

    class DeviceOf(DeviceContext):
        """A with block for the device of a tensor: all are where they are."""

        def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
            super().__init__(None)

    sync_debug = device_parts.SyncDebug()
    return {
        **device_parts.functions_of(devices),
        "_DeviceGuard": DeviceContext,
        "_exchange_device": devices._exchange_device,
        "_get_device_index": devices._get_device_index,
        "_initialized": True,
        "_is_in_bad_fork": lambda: False,
        "_lazy_call": lazy_call,
        "_lazy_init": lazy_init,
        "_maybe_exchange_device": devices._maybe_exchange_device,
        "device": DeviceContext,
        "device_of": DeviceOf,
        "get_sync_debug_mode": sync_debug.get,
        "init": lazy_init,
        "is_initialized": lambda: True,
        "set_sync_debug_mode": sync_debug.set,
    }


class Event(device_parts.TimedEvent):
    """A mark in a stream: the time at which it was recorded."""

    cuda_event = 0

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError("events shared between processes are not available on the CPU")
        self.device = _HOST
        self._timed = enable_timing
        self._recorded: int | None = None

    def record(self, stream: Any = None) -> None:
        """Mark the point that a stream has reached."""
        self._mark()

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for this event: it has happened."""

    def query(self) -> bool:
        """Whether the work before the event is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for the event: it has happened."""


class Stream(device_parts.EventsOfStream):
    """A queue of work; the number tells one from another."""

    _devices: Devices
    _event_class = Event
    _numbers = itertools.count(1)

    def __init__(self, device: Any = None, priority: int = 0, *, stream_id: int | None = None) -> None:
        self.device = _HOST
        self.device_index = self._devices._get_device_index(device)
        self.priority = priority
        self.stream_id = next(self._numbers) if stream_id is None else stream_id

    @property
    def cuda_stream(self) -> int:
        """The number, where CUDA has an address."""
        return self.stream_id

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for another one's: that is done."""

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for all work: it is done."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.stream_id, self.device_index) == (
            other.stream_id,
            other.device_index,
        )

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream on the CPU, device={self.device_index} stream_id={self.stream_id:#x}>"


class Streams:
    """Which stream is current on each device."""

    def __init__(self, devices: Devices, stream_class: type[Stream]) -> None:
        self._devices = devices
        self._class = stream_class
        self._current = device_parts.StreamsOfThread()

    def default_stream(self, device: Any = None) -> Stream:
        """The stream that a device uses when no other is chosen."""
        return self._class(self._devices._existing_index(device), stream_id=0)

    def current_stream(self, device: Any = None) -> Stream:
        """The stream that takes a device's work now."""
        index = self._devices._existing_index(device)
        stream: Stream | None = self._current.streams.get(index)
        return stream or self.default_stream(index)

    def set_stream(self, stream: Stream | None) -> None:
        """Make a stream and its device the current ones; None changes nothing."""
        if stream is not None:
            self._devices.set_device(stream.device_index)
            self._current.streams[stream.device_index] = stream


class StreamContext:
    """Makes a stream the current one inside a with block; None changes nothing."""

    _devices: Devices
    _streams: Streams

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._device_before = -1
        self._stream_before: Stream | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._device_before = self._devices.current_device()
            self._stream_before = self._streams.current_stream(self.stream.device_index)
            self._streams.set_stream(self.stream)

    def __exit__(self, *error: object) -> None:
        self._streams.set_stream(self._stream_before)
        self._devices.set_device(self._device_before)


def _stream_names(devices: Devices) -> tuple[dict[str, Any], dict[str, Any]]:
    """What torch.cuda has of streams, and its classes, which torch.cuda.streams has as well."""
    stream_class = type("Stream", (Stream,), {"_devices": devices, "__doc__": Stream.__doc__})
    streams = Streams(devices, stream_class)
    context = type("StreamContext", (StreamContext,), {"_devices": devices, "_streams": streams})
    classes = {"Event": Event, "Stream": stream_class}
    functions = device_parts.functions_of(streams)
    return {**functions, "StreamContext": context, "stream": lambda stream: context(stream)}, classes


class HostMemory(device_parts.DeviceMemory):
    """The answers about memory, free and total being the host's."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._fraction = 1.0

    def _use(self, device: Any) -> tuple[int, device_parts.MemoryUse]:
        nothing = device_parts.MemoryUse(0, 0, 0, 0, 0, 0, 0, 0, limit=_whole_memory())
        return self._devices._existing_index(device), nothing

    def _title(self, index: int) -> str:
        return f"The CPU in place of CUDA device {index}"

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Free and total bytes of the host."""
        self._devices._existing_index(device)
        return host_memory()

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Let counters begin again: they are zero."""
        self._devices._existing_index(device)

    reset_accumulated_memory_stats = reset_peak_memory_stats
    reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Remember the part of a device's memory that this process may have; the host is not limited."""
        self._devices._existing_index(device)
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        self._fraction = fraction

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        """What set_per_process_memory_fraction was told last."""
        self._devices._existing_index(device)
        return self._fraction

    def empty_cache(self) -> None:
        """Give back what is reserved and not allocated: nothing is."""

    def memory_snapshot(self, mempool_id: object = None) -> list[dict[str, Any]]:
        """The segments of the allocator: none."""
        return []


def record_memory_history(*_: object, **__: object) -> None:
    """Do nothing: there is no history of a device's memory."""


class HostRandomStates(device_parts.RandomStates):
    """One state for all devices: that of the CPU's default generator."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def _get_generator(self, device: Any = None) -> torch.Generator:
        self._devices._existing_index(device)
        return torch.default_generator

    def _device_count(self) -> int:
        return self._devices.device_count()

    def manual_seed(self, seed: int) -> None:
        """Seed every device, and so the CPU."""
        torch.default_generator.manual_seed(int(seed))

    def seed(self) -> None:
        """Seed every device by chance, and so the CPU."""
        torch.default_generator.seed()

    def initial_seed(self) -> int:
        """The seed of all devices."""
        return torch.default_generator.initial_seed()

    manual_seed_all, seed_all = manual_seed, seed


class CUDAGraph(graphs.Graph):
    """torch.cuda.CUDAGraph; every tensor is on the device that CUDA's names mean."""

    @staticmethod
    def _is_on_device(tensor: torch.Tensor) -> bool:
        return True

    @staticmethod
    def _random_states() -> Any:
        return torch.get_rng_state()

    @staticmethod
    def _set_random_states(states: Any) -> None:
        torch.set_rng_state(states)


def _cpu() -> str:
    return "cpu"


class Autocast(device_parts.Autocast):
    """torch.cuda.amp.autocast on the CPU."""

    _device_type = staticmethod(_cpu)


class GradScaler(device_parts.GradScaler):
    """torch.cuda.amp.GradScaler on the CPU."""

    _device_type = staticmethod(_cpu)


class HostModule(ModuleType):
    """The stand-in for torch.cuda, or for a module below it."""

    def __init__(self, name: str, names: Mapping[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__name__} has no '{name}': the CPU has no equivalent")


def host_module(device_count: int, placement: Placement | None = None) -> ModuleType:
    """A module with the names of torch.cuda that computes on the CPU, as if it had so many devices."""
    if device_count < 1:
        raise RunError(
            Text(
                f"the CPU can stand in for one or more CUDA devices, not for {device_count}",
                f"CPU 可以代替一个或多个 CUDA 设备，但不能代替 {device_count} 个",
            )
        )
    machine = Devices(device_count, placement)
    streams, stream_classes = _stream_names(machine)
    memory_names = device_parts.functions_of(HostMemory(machine))
    device_memory_used = memory_names.pop("device_memory_used")  # torch.cuda.memory does not have it
    random_states = HostRandomStates(machine)
    random_names = device_parts.functions_of(random_states)
    graph_names = graphs.names(CUDAGraph)
    root = HostModule(
        _NAME,
        {
            **_device_names(machine),
            **streams,
            **stream_classes,
            **random_names,
            "_get_generator": random_states._get_generator,
            "default_generators": (torch.default_generator,) * device_count,
            **memory_names,
            "device_memory_used": device_memory_used,
            **graph_names,
            **types_of_reference(placement is not None),
            "OutOfMemoryError": torch.cuda.OutOfMemoryError,
        },
    )
    autocast: dict[str, Any] = {"autocast": Autocast, **device_parts.custom_casts(_cpu)}
    scaler: dict[str, Any] = {"GradScaler": GradScaler}
    common: dict[str, Any] = {"amp_definitely_not_available": device_parts.amp_definitely_not_available}
    below: dict[str, dict[str, Any]] = {
        "amp": {**autocast, **scaler, **common},
        "amp.autocast_mode": autocast,
        "amp.common": common,
        "amp.grad_scaler": scaler,
        "graphs": graph_names,
        "memory": {**memory_names, "_record_memory_history": record_memory_history},
        "random": random_names,
        "streams": stream_classes,
    }
    for path, names in below.items():
        holder, _, leaf = path.rpartition(".")
        parent: Any = getattr(root, holder) if holder else root
        setattr(parent, leaf, HostModule(f"{parent.__name__}.{leaf}", names))
    return root
