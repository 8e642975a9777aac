"""The vendor's runtime library as torch shows it, its error class, its collectives' version, and profilers' marks."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch.autograd.profiler import record_function

from torchferry.sim.device_module.devices import device_type, lazy_init
from torchferry.sim.device_module.memory import mem_get_info
from torchferry.sim.device_module.streams import synchronize

_SUCCESS = 0


def _succeed(*_: object) -> int:
    return _SUCCESS


_CALLS: Mapping[str, Callable[..., Any]] = {
    "DeviceSynchronize": synchronize,
    "GetErrorString": lambda code: "no error" if code == _SUCCESS else f"error {code}",
    "HostRegister": _succeed,
    "HostUnregister": _succeed,
    "MemGetInfo": mem_get_info,
    "ProfilerStart": _succeed,
    "ProfilerStop": _succeed,
}


class Runtime:
    """A few calls of a runtime library, by CUDA's prefix or the device's own."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        for prefix in ("cuda", device_type()):
            if name.startswith(prefix) and name[len(prefix) :] in _CALLS:
                return _CALLS[name[len(prefix) :]]
        raise AttributeError(f"the simulated runtime library has no '{name}'")


_runtime = Runtime()


def runtime() -> Runtime:
    """The runtime library."""
    lazy_init()
    return _runtime


class RuntimeLibraryError(RuntimeError):
    """A call of the runtime library failed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code} of the runtime library")


def check_error(res: int) -> None:
    """Raise for any code but success."""
    if res != _SUCCESS:
        raise RuntimeLibraryError(res)


def collectives_version() -> tuple[int, int, int]:
    """Zeros: the simulated collectives run over gloo and have no version of the vendor's."""
    return 0, 0, 0


@contextlib.contextmanager
def profile(*_: object, **__: object) -> Iterator[None]:
    """A block that the vendor's profiler records; use torch.profiler to see what ran."""
    yield


def profiler_start() -> None:
    """Do nothing: there is no profiler of the vendor's."""


class PlanCache:
    """The cache of transform plans: its size can be set, nothing is kept."""

    def __init__(self) -> None:
        self.max_size = 0
        self.size = 0

    def clear(self) -> None:
        """Clear nothing: there are no caches."""


API = {"CudaError": RuntimeLibraryError, "check_error": check_error, "cudart": runtime}
COLLECTIVES_API = {"version": collectives_version}
PROFILER_API = {"profile": profile, "start": profiler_start, "stop": profiler_start}
BACKENDS_API = {"cufft_plan_cache": PlanCache()}


class _Stack(threading.local):
    def __init__(self) -> None:
        self.open: list[Any] = []


class _Ranges:
    """The named ranges that are open: a stack a thread for push and pop, numbers for start and end."""

    def __init__(self) -> None:
        self._stack = _Stack()
        self._numbered: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def push(self, msg: str, *_: object, **__: object) -> int:
        """Open a range inside the last one; how deep it is."""
        self._stack.open.append(_opened(msg))
        return len(self._stack.open) - 1

    def pop(self, *_: object, **__: object) -> int:
        """Close the range that was opened last; how deep it was, -1 if there is none."""
        if not self._stack.open:
            return -1
        self._stack.open.pop().__exit__(None, None, None)
        return len(self._stack.open)

    def start(self, msg: str, *_: object, **__: object) -> int:
        """Open a range that may overlap others; its number."""
        number = next(self._numbers)
        self._numbered[number] = _opened(msg)
        return number

    def end(self, range_id: int, *_: object, **__: object) -> None:
        """Close a range by its number; one that isn't open is passed over, as the vendors do."""
        opened = self._numbered.pop(range_id, None)
        if opened is not None:
            opened.__exit__(None, None, None)


def _opened(msg: str) -> Any:
    opened: Any = record_function(msg)
    opened.__enter__()
    return opened


_ranges = _Ranges()


def mark(msg: str = "", *_: object, **__: object) -> None:
    """Mark a point in time."""
    with record_function(msg):
        pass


@contextlib.contextmanager
def named_range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A named range, as a with block or a decorator."""
    opened = _opened(msg)
    try:
        yield
    finally:
        opened.__exit__(None, None, None)


MARKERS_API = {
    "mark": mark,
    "range": named_range,
    "range_end": _ranges.end,
    "range_pop": _ranges.pop,
    "range_push": _ranges.push,
    "range_start": _ranges.start,
}
