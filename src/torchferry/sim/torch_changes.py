"""What PyTorch itself does otherwise in a process with a simulated device: printing, DLPack, backward, DataParallel."""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

import torch
import torch._tensor_str
from torch.nn import DataParallel

from torchferry.runtime.distributed import moving_to_one, one_device_or
from torchferry.sim import native
from torchferry.vendors.model import Support, Vendor

_EXTENSION_DEVICE = 12  # kDLExtDev, which PyTorch writes into the capsule


def print_without_limits() -> None:
    """Tensors are printed with operators and dtypes that the vendor may lack: looking at one must not trip over that."""
    make_text = torch._tensor_str._str

    @wraps(make_text)
    def make_text_without_limits(*args: Any, **kwargs: Any) -> str:
        with native.limits(False):
            text: str = make_text(*args, **kwargs)  # type: ignore[no-untyped-call]
        return text

    torch._tensor_str._str = make_text_without_limits


def exchange_by_dlpack(device_type: str) -> None:
    """Make Tensor.__dlpack_device__ know the device: PyTorch looks for its place for extra devices under a name that it
    no longer has once a vendor has named it."""
    answer = torch.Tensor.__dlpack_device__

    @wraps(answer)
    def with_device(self: torch.Tensor) -> Any:
        if self.device.type == device_type:
            from torch.utils.dlpack import DLDeviceType

            return DLDeviceType(_EXTENSION_DEVICE), self.device.index
        return answer(self)

    torch.Tensor.__dlpack_device__ = with_device  # type: ignore[method-assign]


def backward_in_calling_thread() -> None:
    """In a thread of its own, backward would pay for handing every step over, and kernels for a second set of threads.

    PyTorch would also start a thread for each device, and one that has not come up when a short program ends takes
    the process down with it.
    """
    torch.autograd.set_multithreading_enabled(False)
    engine = getattr(torch.autograd.graph, "_engine_run_backward", None)
    if engine is not None:  # a private name: without it only this thread is served
        thread = threading.local()  # PyTorch's switch is one per thread: each thread's first backward sets it

        def run(*args: Any, **kwargs: Any) -> Any:
            if not hasattr(thread, "seen"):
                thread.seen = True  # a program may set it otherwise afterwards
                torch.autograd.set_multithreading_enabled(False)
            return engine(*args, **kwargs)

        torch.autograd.graph._engine_run_backward = run
        torch.autograd._engine_run_backward = run  # type: ignore[attr-defined]


def refuse_data_parallel(vendor: Vendor) -> None:
    """Make torch.nn.DataParallel raise where it would spread over several devices."""
    message = _no_data_parallel(vendor)

    @wraps(DataParallel.__init__)
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(message)

    DataParallel.__init__ = one_device_or(native.device_count, refuse)  # type: ignore[method-assign]
    DataParallel.scatter = moving_to_one(DataParallel.scatter)  # type: ignore[method-assign]


def _no_data_parallel(vendor: Vendor) -> str:
    if vendor.data_parallel is Support.UNSUPPORTED:
        reason = f"torch.nn.DataParallel is not supported on {vendor.company} devices"
        if vendor.limits.data_parallel_message:
            return vendor.limits.data_parallel_message
    else:
        reason = (
            "torch.nn.DataParallel is not simulated (only CUDA builds of PyTorch contain it), and whether "
            f"{vendor.company} devices support it is unknown"
        )
    return (
        f"{reason}; show the program one device ({vendor.visible_devices_env}=0, or --devices 1), which makes DataParallel a "
        f"plain module, or use torch.nn.parallel.DistributedDataParallel with backend '{vendor.dist_backend}': `ferry convert "
        f"--distributed --main SCRIPT --to {vendor.name}` rewrites a program that has only DataParallel"
    )
