"""Collectives that are waited for later, and groups of part of the ranks."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from tests.sim.distributed.rank import Rank


def check_the_future_holds_device_tensors(me: Rank) -> None:
    tensor = torch.ones(3, device=me.device)
    work = dist.all_reduce(tensor, async_op=True)
    (value,) = work.get_future().wait()
    assert value.device == me.device and value.data_ptr() == tensor.data_ptr()
    assert work.is_completed() and work.is_success() and work.result()[0].device == me.device
    assert value.tolist() == [me.ranks] * 3


def check_a_chain_of_futures(me: Rank) -> None:
    """As communication hooks of DDP do it; a tensor made in it is on the device of the first one."""
    work = dist.all_reduce(torch.ones(3, device=me.device), async_op=True)
    halved = work.get_future().then(
        lambda future: future.value()[0] / 2 + torch.zeros(3, device=me.device.type)
    )
    result = halved.wait()
    assert result.device == me.device and result.tolist() == [me.ranks / 2] * 3


def check_many_at_once(me: Rank) -> None:
    tensors = [torch.full((1000,), float(index), device=me.device) for index in range(40)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait()
    assert all((tensor == me.ranks * index).all() for index, tensor in enumerate(tensors))


def check_polling_a_transfer(me: Rank) -> None:
    tensor = torch.full((4,), float(me.rank), device=me.device)
    partner = me.rank ^ 1  # ranks go in pairs
    work = dist.irecv(tensor, partner) if me.rank % 2 else dist.isend(tensor, partner)
    ends = time.monotonic() + 30
    while not work.is_completed():
        assert time.monotonic() < ends
        time.sleep(0.001)
    work.wait()
    assert tensor.tolist() == [min(me.rank, partner)] * 4


def check_no_memory_is_kept(me: Rank) -> None:
    memory = getattr(torch, me.vendor.device_type).memory_allocated
    dist.barrier()  # some releases of torch keep its tensor for the next one
    before = memory()
    for _ in range(50):
        tensor = torch.ones(1000, device=me.device, dtype=torch.bfloat16)
        dist.all_reduce(tensor, async_op=True).get_future().then(lambda future: future.value()[0]).wait()
        dist.all_to_all_single(torch.empty_like(tensor), tensor)
        work = dist.irecv(tensor, me.rank ^ 1) if me.rank % 2 else dist.isend(tensor, me.rank ^ 1)
        work.wait()
    dist.barrier()
    del tensor, work
    ends = time.monotonic() + 10  # the host's threads let go of the last one a moment later
    while memory() > before and time.monotonic() < ends:
        time.sleep(0.01)
    assert memory() == before


def check_sizes_that_do_not_fit(me: Rank) -> None:
    with pytest.raises(RuntimeError, match="world_size times input"):
        dist.all_gather_into_tensor(torch.empty(3, device=me.device), torch.empty(2, device=me.device))
    with pytest.raises(RuntimeError, match="Split sizes"):
        received = torch.empty(2 * me.ranks, device=me.device)
        dist.all_to_all_single(received, received.clone(), [1] * me.ranks, [1] * me.ranks)


def check_functional_collectives(me: Rank) -> None:
    tensor = torch.full((2,), me.rank + 1.0, device=me.device)
    total = functional.all_reduce(tensor, "sum", dist.group.WORLD)
    assert total.tolist() == [sum(range(1, me.ranks + 1))] * 2 and tensor.tolist() == [me.rank + 1.0] * 2
    gathered = functional.all_gather_tensor(tensor, 0, dist.group.WORLD)
    assert gathered.tolist() == [rank + 1.0 for rank in range(me.ranks) for _ in range(2)]


def check_groups(me: Rank) -> None:
    assert dist.get_backend() == me.vendor.dist_backend
    alone = [dist.new_group([rank]) for rank in range(me.ranks)]
    tensor = torch.ones(2, device=me.device)
    dist.all_reduce(tensor, group=alone[me.rank])
    assert tensor.tolist() == [1, 1]
    both = dist.new_group(backend=f"cpu:gloo,{me.vendor.device_type}:{me.vendor.dist_backend}")
    for place in ("cpu", me.device):
        tensor = torch.ones(2, device=place)
        dist.all_reduce(tensor, group=both)
        assert tensor.tolist() == [me.ranks] * 2
    objects = [me.rank]
    dist.broadcast_object_list(objects, src=0, group=both)
    assert objects == [0]
    dist.destroy_process_group(both)


def check_device_mesh(me: Rank) -> None:
    mesh = init_device_mesh(me.vendor.device_type, (me.ranks,))
    whole = torch.arange(4.0 * me.ranks).view(-1, 2)
    spread = distribute_tensor(whole.to(me.device), mesh, [Shard(0)])
    assert spread.to_local().shape == (2, 2) and spread.to_local().device == me.device
    torch.testing.assert_close((spread * 2).full_tensor().cpu(), whole * 2)


def check_nccl_says_what_to_use(me: Rank) -> None:
    for name in ("nccl", "NCCL", "cuda:nccl", "cpu:gloo,cuda:nccl"):
        with pytest.raises(RuntimeError, match=f"no NCCL; use backend='{me.vendor.dist_backend}'"):
            dist.new_group(backend=name)
    assert dist.Backend("gloo") == "gloo" and dist.Backend.NCCL == "nccl"
