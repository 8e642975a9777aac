"""The vendor's runtime library as torch shows it, its error class, its collectives' version, its profiler switch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchferry.sim.device_module.devices import lazy_init
from torchferry.sim.device_module.identity import device_type
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
        """Nothing is kept."""


API = {"CudaError": RuntimeLibraryError, "check_error": check_error, "cudart": runtime}
COLLECTIVES_API = {"version": collectives_version}
PROFILER_API = {"profile": profile, "start": profiler_start, "stop": profiler_start}
BACKENDS_API = {"cufft_plan_cache": PlanCache()}
