"""CUDA's names made to mean the simulated device: what `transfer_to_npu`, `gpu_migration`, `cuda_migrate` do.

Entry points are replaced once (factories, Tensor.to, Module.cuda, torch.cuda.*, process groups), so that what runs
afterwards costs nothing more. A `torch.device("cuda")` stays what it is and is translated where it is used, as
the vendors' own migrations do.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.utils.rnn import PackedSequence
from torch.utils._device import DeviceContext, _device_constructors

from torchferry.sim.shims.modules import device_module
from torchferry.sim.shims.translation import Translation
from torchferry.vendors.model import Support, Vendor

_DONE = "_means"  # set on torch.cuda: the device type that it stands for
_CUDA = "torch.cuda"
_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_OTHER_FUNCTIONS = (
    "load",
    "set_default_device",
    "get_device_module",
    "is_autocast_enabled",
    "set_autocast_enabled",
    "get_autocast_dtype",
    "set_autocast_dtype",
)
_NEW = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
_TENSOR_METHODS = (*_NEW, "to", "type", "pin_memory", "is_pinned")
_MODULE_METHODS = ("to", "to_empty")


def migrate(vendor: Vendor) -> None:
    """Let torch.cuda, `.cuda()`, "cuda" and "nccl" mean the vendor's device in this process, once."""
    module = device_module(vendor)
    if module is None:
        raise RuntimeError(
            f"there is no {vendor.torch_module}: activate the simulator before migrating to it"
        )
    if getattr(torch.cuda, _DONE, "") == vendor.device_type:
        return
    translation = Translation(vendor.device_type, vendor.torch_module, vendor.dist_backend)
    _replace_torch(translation)
    _replace_methods(vendor, translation)
    _lay_over(torch.cuda, module, translation)
    _follow_renames(vendor, translation)
    _replace_distributed(translation)
    _replace_serialization(translation)
    if vendor.jit_script:
        _run_scripts_eagerly(vendor)
    setattr(torch.cuda, _DONE, vendor.device_type)


def _replace_torch(translation: Translation) -> None:
    """The functions of torch that take a device, and the classes that do."""
    factories = {function.__name__ for function in _device_constructors()}
    for name in sorted(factories.union(_LIKE, _OTHER_FUNCTIONS)):
        _replace(torch, name, translation.of_arguments)
    for owner in (
        DeviceContext,
        torch.amp.autocast_mode.autocast,
        torch.amp.GradScaler,
        torch.utils.data.DataLoader,
    ):
        _replace(owner, "__init__", translation.of_arguments)
    for name in ("custom_fwd", "custom_bwd"):
        _replace(torch.amp, name, translation.of_arguments)
    _replace_generator(translation)


def _replace_generator(translation: Translation) -> None:
    """torch.Generator is a C type: another class takes its name, and answers for its instances."""
    original = torch.Generator

    class OfAnyDevice(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, original)

    class Generator(original, metaclass=OfAnyDevice):  # type: ignore[misc,valid-type]
        def __new__(cls, device: Any = None) -> Any:
            return original(translation.device(device)) if device is not None else original()

    torch.Generator = Generator  # type: ignore[misc]


def _replace_methods(vendor: Vendor, translation: Translation) -> None:
    """Methods and attributes of tensors, modules, packed sequences and storages."""
    for name in _TENSOR_METHODS:
        _replace(torch.Tensor, name, translation.of_arguments)
    for name in _MODULE_METHODS:
        _replace(torch.nn.Module, name, translation.of_arguments)
    storages = (torch.UntypedStorage, torch.TypedStorage)
    owners: tuple[Any, ...] = (torch.Tensor, torch.nn.Module, PackedSequence, *storages)
    for owner in owners:
        method = getattr(owner, vendor.tensor_method, None)
        if method is not None:
            owner.cuda = translation.of_arguments(method)
        flag = inspect.getattr_static(owner, vendor.is_attribute, None)
        if flag is not None:
            owner.is_cuda = flag


def _lay_over(cuda: ModuleType, device: ModuleType, translation: Translation) -> None:
    """Everything that the device's module has, under torch.cuda's names; what it lacks stays CUDA's and says so."""
    for name, value in list(vars(device).items()):
        if name.startswith("__"):
            continue
        own = getattr(cuda, name, None)
        if isinstance(value, ModuleType):
            if isinstance(own, ModuleType):
                _lay_over(own, value, translation)
        else:
            setattr(cuda, name, _for_cuda(value, translation))


def _for_cuda(value: Any, translation: Translation) -> Any:
    """A function of the device's module that takes "cuda:0" for its own device; classes learn it in place."""
    if inspect.isclass(value):
        for name in ("__init__", "__new__"):
            if name in vars(value) and "device" in _parameters(getattr(value, name)):
                _replace(value, name, translation.of_arguments)
        return value
    return translation.of_arguments(value) if inspect.isroutine(value) else value


def _parameters(function: Callable[..., Any]) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return ()


def _follow_renames(vendor: Vendor, translation: Translation) -> None:
    """What the vendor calls otherwise (CUDAGraph, nvtx, nccl), under CUDA's name, by the vendor's own table."""
    for name, api in vendor.apis.items():
        if api.support is not Support.RENAMED or not name.startswith(_CUDA + "."):
            continue
        owner, _, last = name.rpartition(".")
        place, value = _find(owner), _find(api.name)
        if place is not None and value is not None:
            setattr(place, last, _for_cuda(value, translation))


def _find(dotted: str) -> Any:
    """What a dotted name under torch leads to, None where it leads nowhere."""
    value: Any = torch
    for part in dotted.split(".")[1:]:
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def _replace_distributed(translation: Translation) -> None:
    """NCCL's name for a backend is the vendor's; the functions live in two modules."""
    if not dist.is_available():
        return
    owners: tuple[Any, ...] = (dist.distributed_c10d, dist)
    for owner in owners:
        for name in ("init_process_group", "new_group"):
            _replace(owner, name, translation.of_backends)
        owner.is_nccl_available = lambda: True


def _replace_serialization(translation: Translation) -> None:
    """A file that was saved on a GPU is loaded onto the device."""

    def restore(storage: Any, location: str) -> Any:
        device = translation.device(location)
        return None if device == location else restore_on(storage, device)

    restore_on: Callable[..., Any] = torch.serialization.default_restore_location
    torch.serialization.register_package(15, lambda _storage: None, restore)  # before CUDA's own, which is 20


def _run_scripts_eagerly(vendor: Vendor) -> None:
    """torch.jit.script gives back what it is given, as the vendor's migration makes it do."""

    def script(obj: Any, *_: Any, **__: Any) -> Any:
        warnings.warn(
            f"{vendor.plugin}: torch.jit.script does nothing here; the code runs eagerly", stacklevel=2
        )
        return obj

    jit: Any = torch.jit
    jit.script = script
    jit.script_method = lambda function: function


def _replace(owner: Any, name: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a changed function in the place of the original, unless there is none."""
    original = inspect.getattr_static(owner, name, None)
    if original is None:
        return
    function = getattr(owner, name)
    changed = functools.wraps(function)(change(function)) if callable(function) else function
    setattr(owner, name, staticmethod(changed) if name == "__new__" else changed)
