"""Process groups of the simulated device: the vendor's backend name, with Gloo behind it."""

from __future__ import annotations

import atexit
import itertools
import os
from typing import Any

import torch
import torch.distributed as dist

from torchferry.vendors.model import Vendor

_NCCL = "nccl"
_LONGEST_END_MS = 5000  # of a group that waits for a rank that is no more


def register(vendor: Vendor) -> None:
    """Let `init_process_group` know the vendor's backend; without distributed support in torch this does nothing."""
    if not dist.is_available() or not dist.is_gloo_available():
        return
    for dtype in vendor.limits.refused_reductions:
        message = vendor.limits.refused_reduction_message or "reductions of {dtype} are not supported"
        torch.ops.torchferry_sim.refuse_reduction(getattr(torch, dtype), message)
    numbers = itertools.count()

    def create(options: Any, vendor_options: object) -> Any:
        """A backend for one group; the vendor's options tune hardware that is not there."""
        _check_number_of_ranks(vendor, options.group_size)
        store = options.store
        if os.environ.get("GROUP_WORLD_SIZE") == "1":  # several machines may count their restarts differently
            # After a restart, torchrun on one machine keeps its store, with the addresses of the processes that died.
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            store = dist.distributed_c10d.PrefixStore(f"attempt {attempt}", store)
        gloo = dist.ProcessGroupGloo(store, options.group_rank, options.group_size, timeout=options.timeout)
        gloo._set_sequence_number_for_group()
        # The compiled half finds Gloo in a group of its own and puts the device's backend beside it.
        make_group: Any = dist.ProcessGroup  # of the two ways to make one, this is the same in all releases
        group = make_group(options.group_rank, options.group_size)
        group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
        name = f"torchferry-{options.group_id}-{next(numbers)}"
        _add_device_backend(name, group, vendor.dist_backend)
        return group._get_backend(torch.device(vendor.device_type))

    dist.Backend.register_backend(
        vendor.dist_backend, create, extended_api=True, devices=[vendor.device_type]
    )
    # Registered with the device, so that it runs after what the program does at its end.
    atexit.register(torch.ops.torchferry_sim.end_groups, _LONGEST_END_MS)
    _refuse_nccl(vendor)


def _check_number_of_ranks(vendor: Vendor, size: int) -> None:
    """Some cards can be used together only in certain numbers; groups of a part of them are left to the library."""
    card = vendor.card
    number = os.environ.get("LOCAL_WORLD_SIZE") or str(size)
    if card is None or not card.ranks or dist.is_initialized() or number in card.ranks:
        return
    raise RuntimeError(
        f"{vendor.dist_backend.upper()} supports groups of {', '.join(card.ranks)} devices on a server with {card.name}, "
        f"not {number} (source: `ferry vendors {vendor.name}`)"
    )


def _add_device_backend(name: str, group: Any, backend: str) -> None:
    """Groups reach the compiled half by their name in PyTorch's registry: that needs no Python in it."""
    registry: Any = torch._C._distributed_c10d
    registry._register_process_group(name, group)
    try:
        torch.ops.torchferry_sim.add_device_backend(name, backend)
    finally:
        registry._unregister_process_group(name)


def _refuse_nccl(vendor: Vendor) -> None:
    """Every way to a group goes through `Backend(name)`, before ranks wait for each other."""
    backend_class: Any = dist.Backend
    plain = backend_class.__new__

    def checked(cls: type, name: str) -> Any:
        parts = name.lower().split(",") if isinstance(name, str) else []
        if any(part.split(":")[-1] == _NCCL for part in parts):
            raise RuntimeError(
                f"Distributed package doesn't have NCCL built in: the simulated {vendor.device_type} has no NCCL; "
                f"use backend='{vendor.dist_backend}' (for tensors in host memory as well: "
                f"'cpu:gloo,{vendor.device_type}:{vendor.dist_backend}')"
            )
        return plain(cls, name)

    backend_class.__new__ = staticmethod(checked)
