"""Every collective against its definition."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from tests.sim.distributed.rank import Rank

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)


def of_rank(rank: int, dtype: torch.dtype = torch.float32, length: int = 5) -> torch.Tensor:
    """What a rank begins with: small numbers, so that no dtype overflows or rounds."""
    return (torch.arange(length) + 2 * rank + 1).to(dtype)


def on_device(me: Rank, dtype: torch.dtype = torch.float32, length: int = 5) -> torch.Tensor:
    return of_rank(me.rank, dtype, length).to(me.device)


def everyone(me: Rank, dtype: torch.dtype = torch.float32, length: int = 5) -> torch.Tensor:
    return torch.stack([of_rank(rank, dtype, length) for rank in range(me.ranks)])


def same(device_tensor: torch.Tensor, expected: torch.Tensor, me: Rank) -> None:
    assert device_tensor.device == me.device
    torch.testing.assert_close(device_tensor.cpu(), expected, rtol=0, atol=0)


def check_all_reduce_operations(me: Rank) -> None:
    expected = {
        ReduceOp.SUM: everyone(me).sum(0),
        ReduceOp.PRODUCT: everyone(me).prod(0),
        ReduceOp.MIN: everyone(me).amin(0),
        ReduceOp.MAX: everyone(me).amax(0),
        ReduceOp.AVG: everyone(me).mean(0),
    }
    for operation, result in expected.items():
        tensor = on_device(me)
        dist.all_reduce(tensor, operation)
        same(tensor, result, me)


def check_all_reduce_dtypes(me: Rank) -> None:
    refused = {getattr(torch, name) for name in me.vendor.limits.refused_reductions}
    for dtype in (*FLOATS, *INTEGERS):
        tensor = on_device(me, dtype)
        if dtype in refused:
            continue
        dist.all_reduce(tensor)
        same(tensor, everyone(me, dtype).sum(0).to(dtype), me)


def check_dtypes_that_the_vendor_does_not_reduce(me: Rank) -> None:
    for name in me.vendor.limits.refused_reductions:
        tensor = on_device(me, getattr(torch, name))
        refused = pytest.raises(RuntimeError, match="Unsupported data type at::kDouble")
        with refused:
            dist.all_reduce(tensor)
        with refused:
            dist.reduce(tensor, 0)
        with refused:
            dist.reduce_scatter_tensor(tensor[:1], tensor[: me.ranks].clone())
        dist.broadcast(tensor, 0)  # moves it only
        same(tensor, of_rank(0, getattr(torch, name)), me)


def check_half_precision_is_rounded_once(me: Rank) -> None:
    tensor = torch.full((2,), 1 + 2**-8, dtype=torch.bfloat16, device=me.device)
    dist.all_reduce(tensor, ReduceOp.AVG)
    same(tensor, torch.full((2,), 1 + 2**-8, dtype=torch.bfloat16), me)


def check_integer_average_is_cut_off(me: Rank) -> None:
    tensor = torch.tensor([me.rank, -me.rank], device=me.device)
    dist.all_reduce(tensor, ReduceOp.AVG)
    total = sum(range(me.ranks))
    same(tensor, torch.tensor([total // me.ranks, -(total // me.ranks)]), me)


def check_all_reduce_bool_and_complex(me: Rank) -> None:
    truth = torch.tensor([True, me.rank == 0, False], device=me.device)
    dist.all_reduce(truth)
    same(truth, torch.tensor([True, True, False]), me)
    numbers = torch.tensor([1 + 2j, 3j], device=me.device) * (me.rank + 1)
    dist.all_reduce(numbers)
    same(numbers, torch.tensor([1 + 2j, 3j]) * sum(range(1, me.ranks + 1)), me)


def check_all_reduce_scaled_first(me: Rank) -> None:
    tensor = on_device(me)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    same(tensor, (everyone(me) * 0.5).sum(0), me)


def check_bitwise_reductions_are_refused(me: Rank) -> None:
    with pytest.raises(ValueError, match=f"ReduceOp.BAND with {me.vendor.dist_backend.upper()}"):
        dist.all_reduce(on_device(me, torch.int64), ReduceOp.BAND)


def check_gaps_are_refused(me: Rank) -> None:
    with pytest.raises(RuntimeError, match="contiguous"):
        dist.all_reduce(torch.ones(4, 4, device=me.device).t()[:2])


def check_other_memory_format(me: Rank) -> None:
    image = torch.arange(48.0).view(2, 3, 2, 4).contiguous(memory_format=torch.channels_last)
    tensor = image.to(me.device) * (me.rank + 1)
    dist.all_reduce(tensor)
    same(tensor, image * sum(range(1, me.ranks + 1)), me)


def check_host_tensors_are_refused(me: Rank) -> None:
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.all_reduce(torch.ones(2))


def check_broadcast(me: Rank) -> None:
    for dtype in (*FLOATS, *INTEGERS, torch.bool, torch.complex64):
        tensor = on_device(me, dtype)
        dist.broadcast(tensor, src=1)
        same(tensor, of_rank(1, dtype), me)


def check_reduce_changes_the_receiver_only(me: Rank) -> None:
    tensor = on_device(me)
    dist.reduce(tensor, dst=1, op=ReduceOp.SUM)
    same(tensor, everyone(me).sum(0) if me.rank == 1 else of_rank(me.rank), me)


def check_all_gather(me: Rank) -> None:
    gathered = [torch.zeros(5, device=me.device) for _ in range(me.ranks)]
    dist.all_gather(gathered, on_device(me))
    for rank, tensor in enumerate(gathered):
        same(tensor, of_rank(rank), me)


def check_all_gather_of_different_lengths(me: Rank) -> None:
    gathered = [torch.zeros(rank + 1, device=me.device) for rank in range(me.ranks)]
    dist.all_gather(gathered, on_device(me, length=me.rank + 1))
    for rank, tensor in enumerate(gathered):
        same(tensor, of_rank(rank, length=rank + 1), me)


def check_all_gather_into_tensor(me: Rank) -> None:
    gathered = torch.empty(me.ranks * 5, device=me.device)
    dist.all_gather_into_tensor(gathered, on_device(me))
    same(gathered, everyone(me).view(-1), me)


def check_gather(me: Rank) -> None:
    gathered = [torch.zeros(5, device=me.device) for _ in range(me.ranks)] if me.rank == 0 else None
    dist.gather(on_device(me), gathered, dst=0)
    for rank, tensor in enumerate(gathered or []):
        same(tensor, of_rank(rank), me)


def check_scatter(me: Rank) -> None:
    parts = [of_rank(rank).to(me.device) for rank in range(me.ranks)] if me.rank == 0 else None
    mine = torch.zeros(5, device=me.device)
    dist.scatter(mine, parts, src=0)
    same(mine, of_rank(me.rank), me)


def check_reduce_scatter(me: Rank) -> None:
    for operation, scale in ((ReduceOp.SUM, me.ranks), (ReduceOp.AVG, 1)):
        inputs = [of_rank(rank).to(me.device) for rank in range(me.ranks)]
        mine = torch.zeros(5, device=me.device)
        dist.reduce_scatter(mine, inputs, operation)
        same(mine, of_rank(me.rank) * scale, me)


def check_reduce_scatter_tensor(me: Rank) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int16):
        whole = on_device(me, dtype, 3 * me.ranks)
        mine = torch.zeros(3, dtype=dtype, device=me.device)
        dist.reduce_scatter_tensor(mine, whole)
        same(mine, everyone(me, dtype, 3 * me.ranks).sum(0).to(dtype)[3 * me.rank : 3 * me.rank + 3], me)
        same(whole, of_rank(me.rank, dtype, 3 * me.ranks), me)


def check_all_to_all_single(me: Rank) -> None:
    received = torch.zeros(2 * me.ranks, 3, device=me.device)
    sent = torch.arange(6.0 * me.ranks).view(-1, 3).to(me.device) + 100 * me.rank
    dist.all_to_all_single(received, sent)
    rows = torch.arange(6.0 * me.ranks).view(-1, 3)[2 * me.rank : 2 * me.rank + 2]
    same(received, torch.cat([rows + 100 * rank for rank in range(me.ranks)]), me)


def check_all_to_all_single_with_splits(me: Rank) -> None:
    """Each rank sends r + 1 rows to rank r."""
    sizes = [rank + 1 for rank in range(me.ranks)]
    sent = torch.full((sum(sizes), 2), float(me.rank), device=me.device)
    received = torch.zeros((me.rank + 1) * me.ranks, 2, device=me.device)
    dist.all_to_all_single(received, sent, [me.rank + 1] * me.ranks, sizes)
    expected = torch.arange(float(me.ranks)).repeat_interleave(me.rank + 1).view(-1, 1).expand(-1, 2)
    same(received, expected, me)


def check_all_to_all_of_lists(me: Rank) -> None:
    sent = [torch.full((rank + 1,), float(10 * me.rank + rank), device=me.device) for rank in range(me.ranks)]
    received = [torch.zeros(me.rank + 1, device=me.device) for _ in range(me.ranks)]
    dist.all_to_all(received, sent)
    for rank, tensor in enumerate(received):
        same(tensor, torch.full((me.rank + 1,), float(10 * rank + me.rank)), me)


def check_send_and_receive(me: Rank) -> None:
    if me.rank == 0:
        dist.send(on_device(me), dst=1, tag=7)
    elif me.rank == 1:
        tensor = torch.zeros(5, device=me.device)
        assert dist.recv(tensor, src=0, tag=7) == 0
        same(tensor, of_rank(0), me)


def check_receive_from_anyone(me: Rank) -> None:
    if me.rank == 1:
        dist.send(on_device(me), dst=0)
    elif me.rank == 0:
        tensor = torch.zeros(5, device=me.device)
        assert dist.recv(tensor) == 1
        same(tensor, of_rank(1), me)
    dist.barrier()  # what other ranks send next must not be taken for it


def check_batched_send_and_receive(me: Rank) -> None:
    after, before = (me.rank + 1) % me.ranks, (me.rank - 1) % me.ranks
    tensor = torch.zeros(5, device=me.device)
    sends = dist.P2POp(dist.isend, on_device(me), after)
    for request in dist.batch_isend_irecv([sends, dist.P2POp(dist.irecv, tensor, before)]):
        request.wait()
    same(tensor, of_rank(before), me)


def check_empty_tensors(me: Rank) -> None:
    dist.all_reduce(torch.empty(0, device=me.device))
    dist.broadcast(torch.empty(0, device=me.device), src=0)
    dist.all_gather_into_tensor(torch.empty(0, device=me.device), torch.empty(0, device=me.device))


def check_coalesced(me: Rank) -> None:
    tensors = [on_device(me, length=3), on_device(me, length=7)]
    dist.all_reduce_coalesced(tensors)
    for tensor in tensors:
        same(tensor, everyone(me, length=len(tensor)).sum(0), me)
    gathered = [torch.empty(me.ranks * 5, device=me.device), torch.empty(me.ranks * 2, device=me.device)]
    with dist._coalescing_manager():
        dist.all_gather_into_tensor(gathered[0], on_device(me))
        dist.all_gather_into_tensor(gathered[1], on_device(me, length=2))
    same(gathered[0], everyone(me).view(-1), me)
    same(gathered[1], everyone(me, length=2).view(-1), me)


def check_objects(me: Rank) -> None:
    gathered: list[object] = [None] * me.ranks
    dist.all_gather_object(gathered, {"rank": me.rank})
    assert gathered == [{"rank": rank} for rank in range(me.ranks)]
    objects = ["from 1", 1] if me.rank == 1 else [None, None]
    dist.broadcast_object_list(objects, src=1)
    assert objects == ["from 1", 1]


def check_barriers(me: Rank) -> None:
    dist.barrier()
    dist.barrier(device_ids=[me.rank])
    work = dist.barrier(async_op=True)
    work.wait()
    assert work.is_completed()
