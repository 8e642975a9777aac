"""torch.cuda for a process in which CUDA means the CPU: the original of a proof runs on it, unchanged.

All of CUDA's devices are the CPU, and all randomness is its default generator's. What asks for hardware has no
counterpart here: the layer lets those names raise, and answers the neutral ones (nvtx, cudart, capability) itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from torchferry.errors import RunError
from torchferry.runtime.host import devices, graphs, memory, mixed_precision, seeds, streams, typed
from torchferry.runtime.host.devices import Placement

_NAME = "torch.cuda on the CPU"


class HostModule(ModuleType):
    """The stand-in for torch.cuda, or for a module below it."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__name__} has no '{name}': the CPU has no counterpart of it")


def host_module(device_count: int, placement: Placement | None = None) -> ModuleType:
    """A module with the names of torch.cuda that computes on the CPU, as if it had so many devices."""
    if device_count < 1:
        raise RunError(f"the CPU can stand for one CUDA device or more, not for {device_count}")
    machine = devices.Devices(device_count, placement)
    stream_names, stream_classes = streams.names(machine)
    seed_names, random_names = seeds.names(machine)
    held_names, memory_names = memory.names(machine)
    root = _module(
        _NAME,
        {
            **devices.names(machine),
            **stream_names,
            **seed_names,
            **held_names,
            **graphs.NAMES,
            **typed.names(placement is not None),
            "OutOfMemoryError": torch.cuda.OutOfMemoryError,
        },
    )
    for path, names in {
        **mixed_precision.MODULES,
        "graphs": graphs.NAMES,
        "memory": memory_names,
        "random": random_names,
        "streams": stream_classes,
    }.items():
        _hang(root, path, names)
    return root


def _module(name: str, names: Mapping[str, Any]) -> HostModule:
    made = HostModule(name)
    vars(made).update(names)
    return made


def _hang(root: ModuleType, path: str, names: Mapping[str, Any]) -> None:
    *above, leaf = path.split(".")
    parent = root
    for part in above:
        parent = getattr(parent, part)
    setattr(parent, leaf, _module(f"{parent.__name__}.{leaf}", names))
