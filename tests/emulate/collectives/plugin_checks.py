"""Where the vendor's real plugin differs from our simulated device, and what is only seen on it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from tests.sim.distributed.rank import Rank


def check_bitwise_reductions(me: Rank) -> None:
    with pytest.raises(RuntimeError, match=r"Cannot use ReduceOp\.BAND with HCCL"):
        dist.all_reduce(torch.ones(2, dtype=torch.int64, device=me.device), ReduceOp.BAND)


def check_nothing_is_received_from_anyone(me: Rank) -> None:
    with pytest.raises(RuntimeError, match="ProcessGroupHCCL does not support recv"):
        dist.recv(torch.ones(2, device=me.device))


def check_what_is_waited_for(me: Rank) -> None:
    """wait() orders streams; a synchronized device has done all."""
    tensor = torch.full((100_000,), float(me.rank), device=me.device)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    doubled = tensor * 2  # behind it, on the stream of the program
    assert doubled[-1].item() == me.ranks * (me.ranks - 1)
    torch.accelerator.synchronize()
    assert work.is_completed() and work.result()[0].device == me.device


def check_memory_is_free_again(me: Rank) -> None:
    memory = getattr(torch, me.vendor.device_type).memory_allocated
    before = memory()
    for _ in range(20):
        dist.all_reduce(torch.ones(1000, device=me.device))
    torch.accelerator.synchronize()
    torch.ones(1, device=me.device)  # an allocation takes back what other streams have used
    assert memory() <= before


def check_name_of_the_communicator(me: Rank) -> None:
    backend: Any = dist.distributed_c10d._get_default_group()._get_backend(me.device)
    names: list[str | None] = [None] * me.ranks
    dist.all_gather_object(names, backend.get_hccl_comm_name(me.rank))
    assert names[0] and len(set(names)) == 1, names


def check_many_groups(me: Rank) -> None:
    """Each with its own communicator: several at once, made, used in different orders and taken down again."""
    for _ in range(3):
        groups = [dist.new_group(list(range(me.ranks))) for _ in range(4)]
        tensors = [torch.ones(1000, device=me.device) for _ in groups]
        works = [
            dist.all_reduce(tensor, group=group, async_op=True)
            for tensor, group in zip(tensors, groups, strict=True)
        ]
        for work, tensor in reversed(list(zip(works, tensors, strict=True))):
            work.wait()
            assert tensor.sum().item() == 1000 * me.ranks
        for group in groups:
            dist.destroy_process_group(group)
