"""The module torch.<type> of the simulated device (torch.npu, torch.mlu, ...), built from the vendor's tables."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.backend_registration import generate_methods_for_privateuse1_backend
from torch.utils.checkpoint import DefaultDeviceType

from torchferry.sim.device_module import (
    devices,
    graphs,
    memory,
    mixed_precision,
    runtime,
    seeds,
    streams,
    typed,
)
from torchferry.sim.device_module.devices import IDENTITY_ATTRIBUTE, Identity
from torchferry.sim.device_module.extras import (
    Extra,
    functions,
    imported_when_called,
    load_extras,
    properties,
)
from torchferry.sim.device_module.surface import Surface, Tree
from torchferry.vendors.model import Support, Vendor

# CUDA's submodules -> what they hold; "" is torch.cuda itself
_AREAS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "": (devices.API, memory.API, streams.CLASSES_API, streams.API, seeds.API, graphs.API, runtime.API),
    "amp": (mixed_precision.AUTOCAST_API, mixed_precision.SCALER_API, mixed_precision.COMMON_API),
    "amp.autocast_mode": (mixed_precision.AUTOCAST_API,),
    "amp.common": (mixed_precision.COMMON_API,),
    "amp.grad_scaler": (mixed_precision.SCALER_API,),
    "graphs": (graphs.API,),
    "memory": (memory.API,),
    "nccl": (runtime.COLLECTIVES_API,),
    "nvtx": (runtime.MARKERS_API,),
    "profiler": (runtime.PROFILER_API,),
    "random": (seeds.API,),
    "streams": (streams.CLASSES_API,),
}
_INTERNAL: Mapping[str, Any] = {**devices.INTERNAL, **mixed_precision.INTERNAL, **seeds.INTERNAL}
_SCALER = "GradScaler"


def install(vendor: Vendor, memory_of_device: int, device_name: str) -> ModuleType:
    """Build the vendor's device module and hang it into torch. PrivateUse1 has the vendor's name already."""
    extras = load_extras(Path(vendor.folder))
    tree = Tree(vendor.torch_module, vendor.company)
    tensor_types = typed.tensor_types(vendor.torch_module, vendor.device_type)
    storage_types = typed.storage_types(vendor.torch_module)
    own_scaler = any(extra.kind == "own_scaler" for extra in extras)
    implemented = _implemented({**tensor_types, **storage_types}, own_scaler)
    Surface(vendor, implemented, [f"torch.cuda.{area}" for area in _AREAS if area]).fill(tree)
    for name, value in _INTERNAL.items():
        tree.place(name, value)
    variables = [extra.name for extra in extras if extra.kind == "capability_env"]
    identity = Identity(vendor, device_name, memory_of_device, properties(extras), "".join(variables[:1]))
    setattr(tree.root, IDENTITY_ATTRIBUTE, identity)
    _add_extras(tree, extras)
    _register(vendor, tree)
    typed.teach_default_tensor_type(tensor_types)
    devices.watch_forks()
    return tree.root


def _implemented(types: Mapping[str, type], own_scaler: bool) -> dict[str, Any]:
    """Every CUDA name that the simulated device has, in full."""
    found: dict[str, Any] = {
        f"torch.backends.cuda.{name}": value for name, value in runtime.BACKENDS_API.items()
    }
    for area, apis in _AREAS.items():
        prefix = f"torch.cuda.{area}." if area else "torch.cuda."
        for api in apis:
            found.update({prefix + name: value for name, value in api.items()})
            if own_scaler and _SCALER in api:
                found[prefix + _SCALER] = mixed_precision.SwitchableGradScaler
    found.update({f"torch.cuda.{name}": made for name, made in types.items()})
    found["torch.cuda.default_generators"] = seeds.DefaultGenerators()
    found["torch.cuda.OutOfMemoryError"] = torch.cuda.OutOfMemoryError
    return found


def _add_extras(tree: Tree, extras: tuple[Extra, ...]) -> None:
    for name, function in functions(extras).items():
        tree.place(name, function)
    for extra in extras:
        if extra.kind == "switch":
            tree.switch(extra.name, extra.value)
        elif extra.kind == "alias":
            tree.place(extra.name, tree.find(extra.key))
        elif extra.kind == "in_torch":
            path, _, leaf = extra.name.rpartition(".")
            holder = functools.reduce(getattr, filter(None, path.split(".")), torch)
            setattr(holder, leaf, imported_when_called(extra.key))
        elif extra.kind == "library":
            _add_library(extra.name, extra.key)


class _Library(ModuleType):
    """A module that is another one as soon as something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not self._means:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return getattr(importlib.import_module(self._means), name)

    _means = ""


def _add_library(name: str, means: str) -> None:
    """`from torch.NAME import ...`, with the packages on the way."""
    path = "torch"
    holder: Any = torch
    for part in name.split("."):
        path = f"{path}.{part}"
        try:
            module: Any = importlib.import_module(path)  # what torch has there itself stays
        except ModuleNotFoundError:
            module = _Library(path)
            module.__path__ = []
            sys.modules[path] = module
            setattr(holder, part, module)
        holder = module
    holder._means = means


def _register(vendor: Vendor, tree: Tree) -> None:
    """Make `import torch.<type>.amp` and torch.<type> work, and give tensors and modules their methods."""
    torch._register_device_module(vendor.device_type, tree.root)  # type: ignore[no-untyped-call]
    sys.modules.update(tree.modules())
    generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    DefaultDeviceType.set_device_type(vendor.device_type)  # for states of generators, which are CPU tensors
    setattr(streams.Stream, f"{vendor.device_type}_stream", property(lambda stream: stream.stream_id))
    version = vendor.api("torch.version.cuda")
    if version.support is Support.RENAMED:
        setattr(torch.version, version.name.rpartition(".")[2], "simulated")
