"""What programs ask of torch.cuda and a vendor's module may lack or answer with nothing: neutral answers."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from torchferry.runtime.target import LayerTarget

_NCCL_VERSION = (2, 20, 5)  # programs ask whether NCCL is new enough; the vendor's library is not NCCL at all
Answer = tuple[Callable[..., Any], str]


def gaps(target: LayerTarget, in_front: Mapping[str, Answer]) -> tuple[dict[str, Answer], frozenset[str]]:
    """Name of torch.cuda -> the function that fills a gap of a target's module, and what it does; and the names whose
    function stands in front of the vendor's, and calls it."""
    named = {f"torch.cuda.{name}": answer for name, answer in _NEUTRAL.items()}
    named["torch.cuda.is_current_stream_capturing"] = _capturing(target)
    return {**named, **in_front}, frozenset(in_front) | {"torch.cuda.nccl.version"}


def _capturing(target: LayerTarget) -> Answer:
    """A vendor may have the question in its module of graphs only."""
    with warnings.catch_warnings():
        # a simulated module warns of what is not known to exist: nobody uses it yet
        warnings.simplefilter("ignore")
        ask = getattr(getattr(target.module, "graphs", None), "is_current_stream_capturing", None)
    return (lambda: False, "false") if ask is None else (ask, f"{target.torch_module}.graphs.{ask.__name__}")


def _nothing(*_: Any, **__: Any) -> None: ...


def _zero(*_: Any, **__: Any) -> int:
    """Zero: success, as CUDA's runtime counts."""
    return 0


@contextlib.contextmanager
def _nothing_inside(*_: Any, **__: Any) -> Iterator[None]:
    yield


# The calls of CUDA's runtime library that training programs make to steer a profiler.
_CUDART = SimpleNamespace(
    cudaProfilerStart=_zero, cudaProfilerStop=_zero, cudaHostRegister=_zero, cudaHostUnregister=_zero
)


def get_arch_list() -> list[str]:
    """No architectures: nothing is compiled for CUDA here."""
    return []


_DOES_NOTHING = "does nothing"
_NEUTRAL: Mapping[str, Answer] = {
    "amp.amp_definitely_not_available": (lambda: False, "false"),
    "amp.common.amp_definitely_not_available": (lambda: False, "false"),
    "check_error": (_nothing, _DOES_NOTHING),
    "cudart": (lambda: _CUDART, "has no effect"),
    "get_allocator_backend": (lambda: "native", '"native"'),
    "get_arch_list": (get_arch_list, "no architectures"),
    "get_gencode_flags": (lambda: "", "no flags"),
    "get_sync_debug_mode": (_zero, "0"),
    "graphs.is_current_stream_capturing": (lambda: False, "false"),
    "init": (_nothing, _DOES_NOTHING),
    "ipc_collect": (_nothing, _DOES_NOTHING),
    "is_tf32_supported": (lambda: False, "false"),
    "nccl.is_available": (lambda tensors: True, "True: the vendor's collectives are available"),
    "nccl.version": (lambda: _NCCL_VERSION, ".".join(map(str, _NCCL_VERSION))),
    "nvtx.mark": (_nothing, _DOES_NOTHING),
    "nvtx.range": (_nothing_inside, _DOES_NOTHING),
    "nvtx.range_end": (_nothing, _DOES_NOTHING),
    "nvtx.range_pop": (_zero, _DOES_NOTHING),
    "nvtx.range_push": (_zero, _DOES_NOTHING),
    "nvtx.range_start": (_zero, _DOES_NOTHING),
    "profiler.init": (_nothing, _DOES_NOTHING),
    "profiler.profile": (_nothing_inside, _DOES_NOTHING),
    "profiler.start": (_nothing, _DOES_NOTHING),
    "profiler.stop": (_nothing, _DOES_NOTHING),
    "set_sync_debug_mode": (_nothing, _DOES_NOTHING),
    "_sleep": (lambda cycles: time.sleep(cycles / 1e9), "waits on the host"),
}


# What stands under a name of torch.cuda that the device has no counterpart of: an error that says which and why.

NOT_HERE = "not available on this device: raises"


class NotOnThisDeviceError(NotImplementedError):
    """A program used something of CUDA's that the device it runs on does not have."""


def absent(name: str, original: Any, target: LayerTarget) -> Any:
    """A function or class in the place of `original` that raises when it is used."""
    if target.is_reference:
        message = f"{name} has no equivalent on the CPU, which stands in for CUDA here; guard the call"
    else:
        note = target.vendor.api_notes.get(name, "") if target.vendor else ""
        message = (
            f"{name} has no equivalent on {target.company}'s `{target.device_type}` device{note and f': {note}'}; "
            f"guard the call, or replace it (ferry scan --to {target.settings.vendor} lists all such places)"
        )

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotOnThisDeviceError(message)

    leaf = name.rpartition(".")[2]
    if isinstance(original, type):
        return type(leaf, (), {"__init__": refuse, "__module__": original.__module__, "__doc__": message})
    refuse.__name__ = refuse.__qualname__ = leaf
    refuse.__doc__ = message
    return refuse
