"""Targets that are no single vendor: device-agnostic code on torch.accelerator, and code that keeps CUDA beside a device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from torchferry.conversion.added import place_helper
from torchferry.conversion.discover import read_file
from torchferry.conversion.target import CLASS_METHODS, Helper, Spelling, Target
from torchferry.vendors.keys import Source
from torchferry.vendors.model import Api, Support, Vendor

# A module that is added decides which device it is.
HELPER_NAME = "ferry_device"
_CUDA = "torch.cuda."
# Submodules of torch.cuda whose names the helper has on its own level.
_FLAT = ("amp.autocast_mode.", "amp.grad_scaler.", "amp.", "memory.", "random.", "streams.")
_OF_HELPER = frozenset({"autocast", "GradScaler", "custom_fwd", "custom_bwd"})
# What the helper makes up for if a vendor has nothing like it.
_HARMLESS = (
    "OutOfMemoryError", "init", "ipc_collect", "nvtx", "reset_max_memory_allocated", "reset_max_memory_cached"
)  # fmt: skip
_MARKERS = ("nvtx.mark", "nvtx.range_push", "nvtx.range_pop", "nvtx.range_start", "nvtx.range_end")
_MISSING = Api(Support.UNSUPPORTED, "")
_USABLE = (Support.SAME, Support.RENAMED, Support.UNKNOWN)
_PLUGIN = """\
if asked in ("", VENDOR):
    try:
        import {plugin}  # noqa: F401 - this adds torch.{device}
    except ImportError:
        if asked:
            raise

"""
_VISIBLE = """\
if "CUDA_VISIBLE_DEVICES" in os.environ:
    os.environ.setdefault("{variable}", os.environ["CUDA_VISIBLE_DEVICES"])

"""


def keep_cuda_target(vendor: Vendor, name: str = HELPER_NAME) -> Target:
    """Code that runs on a vendor's device, on CUDA and on the CPU."""
    device = Spelling(expression=f"{name}.DEVICE_TYPE")
    return Target(
        vendor=_through_helper(vendor, name),
        device=device,
        backend=Spelling(expression=f"{name}.DIST_BACKEND" if vendor.dist_backend else ""),
        prelude=f"import {name}",
        prelude_module=name,
        prelude_name=name,
        unlisted_module=name,
        unlisted_support=Support.UNKNOWN,
        helper=Helper(name, vendor, helper_source(vendor)),
    )


def placed(target: Target, folder: Path, paths: Sequence[str]) -> Target:
    """The target for one project: with a name for the helper that is free there, and a place within reach of each file."""
    if target.helper is None:
        return target
    vendor = target.helper.vendor
    placement = place_helper(folder, paths)
    places = {os.path.join(folder, place) for place in placement.folders.values()}
    name, number = HELPER_NAME, 1
    while any(_is_taken(os.path.join(place, name), vendor) for place in places):
        number += 1
        name = f"{HELPER_NAME}_{number}"
    target = keep_cuda_target(vendor, name)
    assert target.helper is not None
    imports = {path: f"from {package} import {name}" for path, package in placement.packages.items()}
    return replace(target, helper=replace(target.helper, imports=imports, places=placement.folders))


def _is_taken(path: str, vendor: Vendor) -> bool:
    if os.path.lexists(path):
        return True
    try:
        return not serves(read_file(f"{path}.py"), vendor)
    except OSError:
        return os.path.lexists(f"{path}.py")


def helper_source(vendor: Vendor) -> bytes:
    """The module that decides on the device."""
    template = (
        resources.files("torchferry.conversion").joinpath("assets/ferry_device.py.txt").read_text("utf-8")
    )
    device = vendor.torch_module.removeprefix("torch.")
    plugin = _PLUGIN.format(plugin=vendor.plugin, device=device) if vendor.plugin else ""
    variable = vendor.visible_devices_env
    renamed = "".join(f'    "{name}": "{path}",\n' for name, path in _renamed(vendor).items())
    words = {
        "@COMPANY@": vendor.company,
        "@DEVICE@": vendor.device_type,
        "@BACKEND@": vendor.dist_backend,
        "@RENAMED@": "{\n" + renamed + "}" if renamed else "{}",
        "@HARMLESS@": "(\n" + "".join(f'    "{name}",\n' for name in _HARMLESS) + ")",
        "@PLUGIN@\n": plugin,
        "@VISIBLE@\n": _VISIBLE.format(variable=variable) if variable else "",
    }
    for word, text in words.items():
        template = template.replace(word, text)
    return template.encode("utf-8")


def is_helper(data: bytes) -> bool:
    """Whether a file is such a module, of this conversion or an earlier one."""
    return (
        data.startswith(b'"""Which device this program runs on: ') and b"`ferry convert --keep-cuda`" in data
    )


def serves(data: bytes, vendor: Vendor) -> bool:
    """Whether a module of an earlier conversion decides between CUDA and this vendor's device."""
    return is_helper(data) and f'\nVENDOR = "{vendor.device_type}"\n'.encode() in data


def _renamed(vendor: Vendor) -> dict[str, str]:
    """torch.cuda name -> what the vendor's module calls it, where that is something else."""
    renamed: dict[str, str] = {}
    for name, api in sorted(vendor.apis.items()):
        short, own = name.removeprefix(_CUDA), api.name.removeprefix(f"{vendor.torch_module}.")
        is_of_module = name.startswith(_CUDA) and "." not in short and own != api.name
        if is_of_module and api.support is Support.RENAMED and own != short:
            renamed[short] = own
    return renamed


def _through_helper(vendor: Vendor, name: str) -> Vendor:
    """The vendor's tables, with everything reached through the helper; what the vendor lacks stays as it was."""
    own = {key for key in vendor.apis if key.startswith(_CUDA) and key.count(".") == 2}
    apis = {
        key: _api(vendor, key, api, name, own) for key, api in vendor.apis.items() if key.startswith(_CUDA)
    }
    apis["torch.cuda.amp"] = Api(Support.RENAMED, name)
    for harmless in (*_HARMLESS, *_MARKERS):
        if apis.get(_CUDA + harmless, _MISSING).support is Support.UNSUPPORTED:
            apis[_CUDA + harmless] = Api(Support.RENAMED, f"{name}.{harmless}")
    apis.update(dict.fromkeys(CLASS_METHODS, _MISSING))
    # One can be put in place by itself only if every device has it.
    replacements = [
        replace(entry, automatic="")
        if entry.automatic.startswith(f"{vendor.torch_module}.") or not entry.automatic.startswith("torch.")
        else entry
        for entry in vendor.replacements
    ]
    return replace(
        vendor,
        torch_module=name,
        tensor_method="to",
        is_attribute="",
        smi="",
        profiler_module="torch.profiler",
        replacements=tuple(replacements),
        apis=apis,
    )


def _api(vendor: Vendor, key: str, api: Api, name: str, own: set[str]) -> Api:
    if api.support not in _USABLE:
        return api
    support = api.support if api.support is Support.UNKNOWN else Support.RENAMED
    short = key.removeprefix(_CUDA)
    if short in _FLAT or f"{short}." in _FLAT:
        return Api(support, name)
    for prefix in _FLAT:
        leaf = short.removeprefix(prefix)
        if leaf != short and "." not in leaf and (leaf in _OF_HELPER or _CUDA + leaf in own):
            return Api(support, f"{name}.{leaf}")
    module, _, leaf = short.rpartition(".")
    own_module = vendor.apis.get(_CUDA + module, Api(Support.SAME, f"{vendor.torch_module}.{module}")).name
    if module and api.name != f"{own_module}.{leaf}":
        return _MISSING  # the parts of a module that has other names elsewhere
    return Api(support, f"{name}.{short}")


# Code that names no vendor, and still runs on CUDA.
PORTABLE = "portable"
_DEVICE = "DEVICE_TYPE"
_PRELUDE = (
    f'{_DEVICE} = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'
)

# torch.cuda name -> the device-agnostic one. Everything else is asked of the module of the device that is there.
_SAME_NAME = (
    "current_stream", "device_count", "empty_cache", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_stream", "synchronize",
)  # fmt: skip
_ACCELERATOR = {
    **dict(zip(_SAME_NAME, _SAME_NAME, strict=True)),
    "current_device": "current_device_index",
    "mem_get_info": "get_memory_info",
    "set_device": "set_device_index",
}
_CORE = {
    "Event": "torch.Event",
    "OutOfMemoryError": "torch.OutOfMemoryError",
    "Stream": "torch.Stream",
    "amp": "torch.amp",
    "amp.GradScaler": "torch.amp.GradScaler",
    "amp.autocast": "torch.amp.autocast",
    "amp.autocast_mode.autocast": "torch.amp.autocast",
    "amp.custom_bwd": "torch.amp.custom_bwd",
    "amp.custom_fwd": "torch.amp.custom_fwd",
    "amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
}
_TYPED = tuple(
    f"{kind}{suffix}"
    for kind in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
    for suffix in ("Tensor", "Storage")
)

_CUDA_ONLY = (
    "caching_allocator_alloc", "caching_allocator_delete", "comm", "cudart", "current_blas_handle", "gds",
    "get_arch_list", "get_gencode_flags", "jiterator", "list_gpu_processes", "nccl", "nvtx", "sparse", "tunable",
)  # fmt: skip


def portable_target() -> Target:
    """Code that names no vendor."""
    apis = {
        _CUDA + old: Api(Support.RENAMED, f"torch.accelerator.{new}") for old, new in _ACCELERATOR.items()
    }
    apis |= {_CUDA + old: Api(Support.RENAMED, new) for old, new in _CORE.items()}
    missing = (*(_CUDA + name for name in (*_TYPED, *_CUDA_ONLY)), *CLASS_METHODS)
    apis |= dict.fromkeys(missing, _MISSING)
    vendor = Vendor(
        name=PORTABLE,
        company="torch.accelerator",
        device_type="",
        plugin="",
        torch_module="torch.accelerator",
        dist_backend="",
        tensor_method="to",
        is_attribute="",
        amp_module="torch.amp",
        profiler_module="torch.profiler",
        data_parallel=Support.UNSUPPORTED,
        oom_exception="torch.OutOfMemoryError",
        apis=apis,
        sources=(Source("torch", "2.13", "torch.accelerator, torch.get_device_module"),),
    )
    return Target(
        vendor=vendor,
        device=Spelling(expression=_DEVICE),
        backend=Spelling(expression=f"torch.distributed.get_default_backend_for_device({_DEVICE})"),
        prelude=_PRELUDE,
        prelude_module="",
        prelude_name=_DEVICE,
        unlisted_module="torch.get_device_module()",
        unlisted_support=Support.RENAMED,
    )
