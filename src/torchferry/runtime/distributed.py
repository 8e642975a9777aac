"""Several devices: NCCL's name is the vendor's collective library's, DataParallel over one device is the module."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import DataParallel

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.settings import TypeChecks
from torchferry.runtime.target import LayerTarget, TwoNames, taking_device_type

_NCCL = "nccl"
_DATA_PARALLEL = "torch.nn.DataParallel"
_ONE_DEVICE = "with one device: the module itself"
# function -> where it takes the backend by position
_TAKE_BACKEND = {"init_process_group": 0, "new_group": 2, "new_subgroups": None, "split_group": None}


def changes(target: LayerTarget) -> Iterator[Change]:
    """Creating groups, asking for their backend, meshes, and what the reference can't take."""
    if not dist.is_available():
        return
    means = f'"nccl" is "{target.backend}"'
    for name, position in _TAKE_BACKEND.items():
        original = getattr(dist, name, None)
        if original is not None:
            function = _of_backend(original, target, position)
            yield Patch(f"torch.distributed.{name}", dist, name, function, means)
            yield Patch(f"torch.distributed.{name}", dist.distributed_c10d, name, function, means)
    for owner in (dist, dist.distributed_c10d):
        yield Patch("torch.distributed.is_nccl_available", owner, "is_nccl_available", lambda: True, "true")
    if target.settings.type_checks is TypeChecks.BOTH:
        ask = dist.get_backend

        @functools.wraps(ask)
        def get_backend(group: Any = None) -> Any:
            name = ask(group)
            return TwoNames(name, _NCCL) if name == target.backend else name

        means = f'"{target.backend}" that equals "nccl"'
        yield Patch("torch.distributed.get_backend", dist, "get_backend", get_backend, means)
    yield from _meshes(target)
    if target.is_reference:
        yield _parallel_without_devices()
        yield from _sharded_on_the_cpu()


def _of_backend(
    function: Callable[..., Any], target: LayerTarget, position: int | None
) -> Callable[..., Any]:
    @functools.wraps(function)
    def translated(*args: Any, **settings: Any) -> Any:
        if position is not None and len(args) > position:
            args = (*args[:position], target.backends(args[position]), *args[position + 1 :])
        if "backend" in settings:
            settings["backend"] = target.backends(settings["backend"])
        if target.is_reference:
            settings.pop("device_id", None)  # the CPU's groups belong to no device
        elif isinstance(settings.get("device_id"), int):
            settings["device_id"] = torch.device(settings["device_id"])
        return function(*args, **settings)

    return translated


def _meshes(target: LayerTarget) -> Iterator[Change]:
    mesh = getattr(dist, "device_mesh", None)
    if mesh is None or not hasattr(mesh, "init_device_mesh"):
        return
    means = f'"cuda" is "{target.device_type}"'

    function = taking_device_type(mesh.init_device_mesh, target, 0)
    for owner in (mesh, dist):
        yield Patch("torch.distributed.init_device_mesh", owner, "init_device_mesh", function, means)
    made = taking_device_type(mesh.DeviceMesh.__init__, target, 1)
    yield Patch("torch.distributed.DeviceMesh", mesh.DeviceMesh, "__init__", made, means)


def _parallel_without_devices() -> Change:
    """DistributedDataParallel ignores device ids on the CPU."""
    owner = torch.nn.parallel.DistributedDataParallel
    original = owner.__init__

    @functools.wraps(original)
    def without_devices(self: Any, module: Any, *args: Any, **settings: Any) -> None:
        kept = {
            name: value for name, value in settings.items() if name not in ("device_ids", "output_device")
        }
        original(self, module, None, None, *args[2:], **kept)

    return Patch(
        "torch.nn.parallel.DistributedDataParallel", owner, "__init__", without_devices, "ignores device ids"
    )


def _sharded_on_the_cpu() -> Iterator[Change]:
    """FullyShardedDataParallel asks for an accelerator unless it is told a device, and moves the module to that."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    owner = FullyShardedDataParallel
    original = owner.__init__

    @functools.wraps(original)
    def sharded(self: Any, module: Any, *args: Any, **settings: Any) -> None:
        device = settings.get("device_id")
        if device is not None:
            module.to(device if isinstance(device, torch.device) else torch.device(device))
        original(self, module, *args, **{**settings, "device_id": torch.device("cpu")})

    name = "torch.distributed.fsdp.FullyShardedDataParallel"
    yield Patch(name, owner, "__init__", sharded, "shards on the CPU")


def data_parallel_changes(target: LayerTarget) -> Iterator[Change]:
    """torch.nn.DataParallel over one device is the module itself: PyTorch's part of it is in CUDA builds only. Over
    several it stays what the vendor makes of it; a reference has its own."""
    if target.is_reference:
        return
    made = one_device_or(target.module.device_count, DataParallel.__init__)
    yield Patch(_DATA_PARALLEL, DataParallel, "__init__", made, _ONE_DEVICE)
    yield Patch(
        f"{_DATA_PARALLEL}.scatter", DataParallel, "scatter", moving_to_one(DataParallel.scatter), _ONE_DEVICE
    )


def one_device_or(device_count: Callable[[], int], several: Callable[..., None]) -> Callable[..., None]:
    """A constructor that takes one device, and leaves several of them to another one."""
    original = inspect.unwrap(several)  # PyTorch's own

    @functools.wraps(several)
    def make(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        number = device_count() if device_ids is None else len(device_ids)
        chosen = original if number <= 1 else several
        chosen(self, module, device_ids, output_device, dim)

    return make


def moving_to_one(scatter: Callable[..., Any]) -> Callable[..., Any]:
    """As DataParallel, arguments on the host are moved to the device."""
    from torch.distributed.utils import _to_kwargs

    @functools.wraps(scatter)
    def move(self: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Any) -> Any:
        if len(device_ids) != 1:
            return scatter(self, inputs, kwargs, device_ids)
        device = torch.device(self.src_device_obj.type, device_ids[0])
        return _to_kwargs(inputs, kwargs or {}, device, False)

    return move
