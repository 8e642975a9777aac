"""The target that is no vendor: device-agnostic code on torch.accelerator, which still runs on CUDA."""

from __future__ import annotations

from torchferry.conversion.target import CLASS_METHODS, Spelling, Target
from torchferry.vendors.keys import Source
from torchferry.vendors.model import Api, Support, Vendor

NAME = "portable"
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


def _apis() -> dict[str, Api]:
    apis = {
        f"torch.cuda.{old}": Api(Support.RENAMED, f"torch.accelerator.{new}")
        for old, new in _ACCELERATOR.items()
    }
    apis.update({f"torch.cuda.{old}": Api(Support.RENAMED, new) for old, new in _CORE.items()})
    missing = (*(f"torch.cuda.{name}" for name in (*_TYPED, *_CUDA_ONLY)), *CLASS_METHODS)
    apis.update(dict.fromkeys(missing, Api(Support.UNSUPPORTED, "")))
    return apis


def portable_target() -> Target:
    """Code that names no vendor."""
    vendor = Vendor(
        name=NAME,
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
        apis=_apis(),
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
