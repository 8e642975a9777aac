"""Training on all ranks gives what one process gives on the joined batch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from tests.sim.distributed.rank import Rank

STEPS = 3
SAMPLES = 4  # of each rank


def network(layers: Callable[[], list[nn.Module]] = list) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), *layers(), nn.Tanh(), nn.Linear(16, 3))


def batches(me: Rank) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    count = SAMPLES * me.ranks
    return [
        (torch.randn(count, 6, generator=generator), torch.randn(count, 3, generator=generator))
        for _ in range(STEPS)
    ]


def my_part(batch: torch.Tensor, me: Rank) -> torch.Tensor:
    return batch.chunk(me.ranks)[me.rank].to(me.device)


def train_alone(model: nn.Module, me: Rank) -> dict[str, torch.Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in batches(me):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    return model.state_dict()


def train_together(model: nn.Module, me: Rank, optimizer: Any = None) -> None:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in batches(me):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(my_part(inputs, me)), my_part(targets, me)).backward()
        optimizer.step()


def compare(
    state: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tolerance: float = 1e-6
) -> None:
    assert state.keys() == expected.keys()
    for name, tensor in state.items():
        torch.testing.assert_close(tensor.cpu(), expected[name], rtol=tolerance, atol=tolerance, msg=name)


def in_parallel(model: nn.Module, me: Rank, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(model.to(me.device), device_ids=[me.rank], **options)


def check_ddp(me: Rank) -> None:
    expected = train_alone(network(), me)
    variants: tuple[dict[str, Any], ...] = (
        {},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"gradient_as_bucket_view": True},
        {"bucket_cap_mb": 0.0001},
    )
    for options in variants:
        model = in_parallel(network(), me, **options)
        train_together(model, me)
        compare(model.module.state_dict(), expected)


def check_ddp_begins_alike(me: Rank) -> None:
    torch.manual_seed(me.rank)
    model = in_parallel(nn.Linear(4, 2), me)
    torch.manual_seed(0)
    assert torch.equal(model.module.weight.cpu(), nn.Linear(4, 2).weight)


def check_ddp_with_an_unused_branch(me: Rank) -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.by_first_rank = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.by_first_rank(self.used(x)) if me.rank == 0 else self.used(x)

    model = in_parallel(Branches(), me, find_unused_parameters=True)
    for _ in range(2):
        model(torch.ones(2, 4, device=me.device)).sum().backward()
    assert model.module.by_first_rank.bias.grad.tolist() == [2 * 2 / me.ranks] * 4


def check_ddp_without_sync(me: Rank) -> None:
    model = in_parallel(nn.Linear(2, 1, bias=False), me)
    inputs = torch.full((1, 2), me.rank + 1.0, device=me.device)
    with model.no_sync():
        model(inputs).sum().backward()
    assert model.module.weight.grad.tolist() == [[me.rank + 1.0] * 2]
    model(inputs).sum().backward()
    average = sum(2 * (rank + 1.0) for rank in range(me.ranks)) / me.ranks
    assert model.module.weight.grad.tolist() == [[average] * 2]


def check_ddp_hooks(me: Rank) -> None:
    expected = train_alone(network(), me)
    hooks = ((default_hooks.allreduce_hook, 1e-6), (default_hooks.fp16_compress_hook, 1e-2))
    for hook, tolerance in hooks:
        model = in_parallel(network(), me)
        model.register_comm_hook(None, hook)
        train_together(model, me)
        compare(model.module.state_dict(), expected, tolerance)


def check_zero_redundancy(me: Rank) -> None:
    expected = train_alone(network(), me)
    model = in_parallel(network(), me)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    train_together(model, me, optimizer)
    compare(model.module.state_dict(), expected)


def check_fully_shard(me: Rank) -> None:
    expected = train_alone(network(), me)
    model = network().to(me.device)
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    assert model[0].weight.to_local().shape[0] == 16 // me.ranks
    train_together(model, me)
    compare({name: tensor.full_tensor() for name, tensor in model.state_dict().items()}, expected)


def check_sync_batch_norm(me: Rank) -> None:
    def norm() -> list[nn.Module]:
        return [nn.BatchNorm1d(16)]

    expected = train_alone(network(norm), me)
    model = in_parallel(nn.SyncBatchNorm.convert_sync_batchnorm(network(norm)), me)
    train_together(model, me)
    compare(model.module.state_dict(), expected, 1e-5)


def check_sync_batch_norm_of_images(me: Rank) -> None:
    """Forward and gradients, in several formats and precisions, with parts of different sizes."""
    for format_ in (torch.contiguous_format, torch.channels_last):
        _compare_norms(me, torch.float32, format_, 1e-5)
    if "float64" not in me.vendor.limits.refused_reductions:
        _compare_norms(me, torch.float64, torch.contiguous_format, 1e-10)


def _compare_norms(me: Rank, dtype: torch.dtype, format_: torch.memory_format, tolerance: float) -> None:
    generator = torch.Generator().manual_seed(2)
    sizes = [rank + 1 for rank in range(me.ranks)]
    whole = torch.randn(sum(sizes), 3, 4, 5, generator=generator, dtype=dtype).contiguous(
        memory_format=format_
    )
    slope = torch.randn(whole.shape, generator=generator, dtype=dtype)
    plain = nn.BatchNorm2d(3).to(dtype)
    with torch.no_grad():
        plain.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain)).to(me.device)
    inputs = whole.clone().requires_grad_()
    outputs = plain(inputs)
    outputs.backward(slope)
    mine = whole.split(sizes)[me.rank].to(me.device).requires_grad_()
    my_outputs = synced(mine)
    my_outputs.backward(slope.split(sizes)[me.rank].to(me.device))
    assert inputs.grad is not None and mine.grad is not None and synced.weight.grad is not None
    for tensor in (synced.weight.grad, synced.bias.grad):
        dist.all_reduce(tensor)
    pairs = {
        "output": (my_outputs, outputs.split(sizes)[me.rank]),
        "gradient": (mine.grad, inputs.grad.split(sizes)[me.rank]),
        "weight": (synced.weight.grad, plain.weight.grad),
        "bias": (synced.bias.grad, plain.bias.grad),
        "running mean": (synced.running_mean, plain.running_mean),
        "running variance": (synced.running_var, plain.running_var),
    }
    for name, (ours, expected) in pairs.items():
        torch.testing.assert_close(ours.detach().cpu(), expected, rtol=tolerance, atol=tolerance, msg=name)


def check_sync_batch_norm_with_an_empty_part(me: Rank) -> None:
    norm = nn.SyncBatchNorm(2).to(me.device)
    samples = 0 if me.rank == me.ranks - 1 else 4
    inputs = torch.arange(2.0 * samples, device=me.device).view(samples, 2).requires_grad_()
    norm(inputs).sum().backward()
    assert norm.running_mean is not None and norm.running_mean.tolist() == torch.tensor([0.3, 0.4]).tolist()


def check_mixed_precision_gradient_scaling(me: Rank) -> None:
    device_type = me.vendor.device_type
    expected = train_alone(network(), me)
    model = in_parallel(network(), me)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(device_type, init_scale=128.0)
    for inputs, targets in batches(me):
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.float16):
            outputs = model(my_part(inputs, me))
        scaler.scale(nn.functional.mse_loss(outputs.float(), my_part(targets, me))).backward()
        scaler.step(optimizer)
        scaler.update()
    compare(model.module.state_dict(), expected, 2e-2)
