"""The same training over the plugin's backend and over Gloo: gradients are to be equal bit for bit."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.sim.distributed.rank import Rank


def check_sums(me: Rank) -> None:
    """Of all lengths that are divided in another way: one element, fewer than ranks, more than one of Gloo's segments."""
    gloo = dist.new_group(backend="gloo")
    for length in (1, 3, 17, 1000, 123_457, 700_001):
        generator = torch.Generator().manual_seed(length + me.rank)
        host = torch.randn(length, generator=generator)
        device = host.to(me.device)
        dist.all_reduce(host, group=gloo)
        dist.all_reduce(device)
        assert torch.equal(host, device.cpu()), length


def check_gradients(me: Rank) -> None:
    host, device = _gradients(me, "cpu", dist.new_group(backend="gloo")), _gradients(me, me.device, None)
    assert host.keys() == device.keys()
    for name, gradient in host.items():
        assert torch.equal(gradient, device[name].cpu()), name


def _gradients(
    me: Rank, place: torch.device | str, group: dist.ProcessGroup | None
) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 700), nn.ReLU(), nn.Linear(700, 500), nn.ReLU(), nn.Linear(500, 3)).to(
        place
    )
    together = DistributedDataParallel(model, process_group=group)
    generator = torch.Generator().manual_seed(me.rank)
    optimizer = torch.optim.SGD(together.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        together(torch.randn(4, 8, generator=generator).to(place)).square().mean().backward()
        optimizer.step()
    return {
        name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None
    }
