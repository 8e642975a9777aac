"""What torch.<type> of the simulated device and torch.cuda of the reference share: devices, streams, memory, random
numbers, mixed precision. A subclass says how its device does it."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.units import size

_LEAST_PRIORITY, _GREATEST_PRIORITY = 0, -1


def functions_of(part: object) -> dict[str, Callable[..., Any]]:
    """The public methods of a part of a device's module: they are called as CUDA's functions are."""
    return {name: getattr(part, name) for name in dir(part) if not name.startswith("_")}


class DeviceContext:
    """Makes a device the current one inside a with block; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else self._index(device)
        self.prev_idx = -1

    @staticmethod
    def _index(device: Any) -> int:
        """The index that a device argument means."""
        raise NotImplementedError

    @staticmethod
    def _exchange(index: int) -> int:
        """Make a device the current one and answer which one was; a negative index changes nothing."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self.prev_idx = self._exchange(self.idx)

    def __exit__(self, *error: object) -> None:
        self._exchange(self.prev_idx)


class Load:
    """How busy this process kept the CPU between two questions."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def percent(self) -> int:
        """CPU time over wall time since the last question, at most 100."""
        wall, cpu = time.monotonic(), time.process_time()
        share = (cpu - self._cpu) / max(wall - self._wall, 1e-9)
        self._wall, self._cpu = wall, cpu
        return min(100, round(100 * share))


class SyncDebug:
    """The mode that set_sync_debug_mode remembers; where nothing synchronizes, nothing warns."""

    modes = ("default", "warn", "error")

    def __init__(self) -> None:
        self._mode = 0

    def set(self, debug_mode: int | str) -> None:
        """Remember what to do at a synchronizing operation: default, warn or error."""
        if isinstance(debug_mode, str):
            if debug_mode not in self.modes:
                raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
            debug_mode = self.modes.index(debug_mode)
        self._mode = debug_mode

    def get(self) -> int:
        """The mode that was set last."""
        return self._mode


class TimedEvent:
    """An event that keeps the time at which it was recorded."""

    _timed: bool
    _recorded: int | None

    def _mark(self) -> None:
        self._recorded = time.perf_counter_ns()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to another one."""
        if not (self._timed and end_event._timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end_event._recorded is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        span: int = end_event._recorded - self._recorded
        return span / 1e6


class EventsOfStream:
    """Events in a stream, and the priorities that it can have."""

    _event_class: Any

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority that a stream can have."""
        return _LEAST_PRIORITY, _GREATEST_PRIORITY

    def record_event(self, event: Any = None) -> Any:
        """Record an event, a new one if none is given."""
        event = self._event_class() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Let later work of this stream wait for an event."""
        event.wait(self)


class StreamsOfThread(threading.local):
    """The current streams of a thread, by device."""

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}


@dataclass(frozen=True)
class MemoryUse:
    """Bytes and counts of one device since the process began or the last reset."""

    allocated: int
    peak_allocated: int
    reserved: int
    peak_reserved: int
    allocations: int
    frees: int
    blocks: int  # allocated now
    out_of_memory: int
    limit: int

    def nested(self) -> dict[str, Any]:
        """Counters in torch's groups: group -> pool -> metric.

        Bytes and calls of one pool are counted. A group that can't be told apart is not there: "active" equals
        "allocated", since nothing waits for a stream, and blocks are not split.
        """
        calls = {"current": self.blocks, "allocated": self.allocations, "freed": self.frees}
        held = {"current": self.allocated, "peak": self.peak_allocated}
        reserved = {"current": self.reserved, "peak": self.peak_reserved}
        return {
            "allocation": {"all": calls},
            "active": {"all": calls},
            "allocated_bytes": {"all": held},
            "active_bytes": {"all": held},
            "requested_bytes": {"all": held},
            "reserved_bytes": {"all": reserved},
            "inactive_split": {"all": {"current": 0, "peak": 0}},
            "inactive_split_bytes": {"all": {"current": 0, "peak": 0}},
            "num_alloc_retries": 0,
            "num_ooms": self.out_of_memory,
        }

    def flat(self) -> OrderedDict[str, Any]:
        """The same under dotted names, sorted."""
        flat: dict[str, Any] = {}

        def add(prefix: str, value: Mapping[str, Any]) -> None:
            for name, entry in value.items():
                dotted = f"{prefix}.{name}" if prefix else name
                if isinstance(entry, Mapping):
                    add(dotted, entry)
                else:
                    flat[dotted] = entry

        add("", self.nested())
        return OrderedDict(sorted(flat.items()))

    def table(self, title: str, abbreviated: bool) -> str:
        """What is held now and was held at most, for people; abbreviated without the counts."""
        rows = [
            ("Allocated memory", size(self.allocated), size(self.peak_allocated)),
            ("Reserved memory", size(self.reserved), size(self.peak_reserved)),
            ("Limit", size(self.limit), ""),
            ("Out of memory errors", str(self.out_of_memory), ""),
        ]
        if not abbreviated:
            rows += [
                ("Allocations since reset", str(self.allocations), ""),
                ("Frees since reset", str(self.frees), ""),
            ]
        lines = [f"| {name:<25} | {now:>14} | {peak:>14} |" for name, now, peak in rows]
        head = f"| {'Metric':<25} | {'Now':>14} | {'Peak':>14} |"
        rule = "|" + "=" * (len(head) - 2) + "|"
        return "\n".join([rule, f"| {title:<{len(head) - 4}} |", rule, head, rule, *lines, rule])


class DeviceMemory:
    """What torch.cuda.memory answers from the counters of a device, which must exist."""

    def _use(self, device: Any) -> tuple[int, MemoryUse]:
        """The index of a device, and its counters."""
        raise NotImplementedError

    def _title(self, index: int) -> str:
        raise NotImplementedError

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Free and total bytes of a device."""
        raise NotImplementedError

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes that tensors hold on a device."""
        return self._use(device)[1].allocated

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most bytes that tensors have held on a device."""
        return self._use(device)[1].peak_allocated

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes that the allocator holds on a device."""
        return self._use(device)[1].reserved

    def max_memory_reserved(self, device: Any = None) -> int:
        """The most bytes that the allocator has held on a device."""
        return self._use(device)[1].peak_reserved

    def device_memory_used(self, device: Any = None) -> int:
        """Bytes of a device that are not free."""
        free, total = self.mem_get_info(device)
        return total - free

    def memory_stats(self, device: Any = None) -> OrderedDict[str, Any]:
        """All counters of a device, under torch's dotted names."""
        return self._use(device)[1].flat()

    def memory_stats_as_nested_dict(self, device: Any = None) -> dict[str, Any]:
        """All counters of a device, in torch's groups."""
        return self._use(device)[1].nested()

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """A table of a device's counters for people."""
        index, use = self._use(device)
        return use.table(self._title(index), abbreviated)

    def list_gpu_processes(self, device: Any = None) -> str:
        """The processes that use a device: this one, no other shares it."""
        index, use = self._use(device)
        return f"GPU:{index}\nprocess {os.getpid():>10d} uses {use.reserved / 2**20:>12.3f} MB GPU memory"

    max_memory_cached = max_memory_reserved
    memory_cached = memory_reserved


class RandomStates:
    """The states of the generators that random operators of the devices draw from."""

    def _get_generator(self, device: Any = None) -> torch.Generator:
        raise NotImplementedError

    def _device_count(self) -> int:
        raise NotImplementedError

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """A device's random state, as bytes on the CPU."""
        return self._get_generator(device).get_state()

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """The random states of all devices."""
        return [self.get_rng_state(device) for device in range(self._device_count())]

    def set_rng_state(self, new_state: torch.Tensor, device: Any = None) -> None:
        """Put back a random state."""
        self._get_generator(device).set_state(new_state.cpu())

    def set_rng_state_all(self, new_states: Iterable[torch.Tensor]) -> None:
        """Put back the random states of all devices."""
        for device, state in enumerate(new_states):
            self.set_rng_state(state, device)


class Autocast(torch.amp.autocast_mode.autocast):
    """torch.autocast of one device type with torch.cuda.amp's signature, in float16 unless told otherwise."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__(self._device_type(), enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    @staticmethod
    def _device_type() -> str:
        raise NotImplementedError


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler of one device type with torch.cuda.amp's signature."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            self._device_type(), init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )

    @staticmethod
    def _device_type() -> str:
        raise NotImplementedError


def custom_casts(device_type: Callable[[], str]) -> dict[str, Callable[..., Any]]:
    """The decorators of an autograd function's forward and backward."""

    def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
        """Decorate the forward of an autograd function as torch.amp.custom_fwd does."""
        if fwd is None:
            return functools.partial(custom_fwd, cast_inputs=cast_inputs)
        return torch.amp.custom_fwd(fwd, device_type=device_type(), cast_inputs=cast_inputs)

    def custom_bwd(bwd: Any) -> Any:
        """Decorate the backward of an autograd function as torch.amp.custom_bwd does."""
        return torch.amp.custom_bwd(bwd, device_type=device_type())

    return {"custom_bwd": custom_bwd, "custom_fwd": custom_fwd}


def amp_definitely_not_available() -> bool:
    """False: the device has autocast."""
    return False
