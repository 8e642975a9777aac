"""One of two processes that train together in each of apex's ways; prints what its weights became."""

from __future__ import annotations

import json
import sys

import torch
import torch.distributed as dist
from torch import nn

from torchferry.sim import activate
from torchferry.vendors.registry import get_vendor

VENDOR = "ascend"
WAYS = ("DistributedDataParallel", "Reducer", "combine_ddp", "torch_ddp")
HALF = ("combine_ddp", "torch_ddp")  # the last one is how the guide does it


def make_net(seed: int) -> nn.Module:
    """Each process begins elsewhere; the wrappers must bring them together."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))


def data() -> torch.Tensor:
    """What all processes train on, an equal part each."""
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(7))


def weights(net: nn.Module) -> list[float]:
    """All weights in one list."""
    return torch.cat([param.detach().float().flatten() for param in net.parameters()]).tolist()


def train(way: str, rank: int, device: str) -> list[float]:
    """Three steps on this process's part of the data."""
    from apex import amp, parallel

    batch = data().chunk(2)[rank].to(device)
    net = make_net(rank).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    combines = {"combine_grad": True, "combine_ddp": True} if way == "combine_ddp" else {}
    level = "O2" if way in HALF else "O0"
    net, optimizer = amp.initialize(net, optimizer, opt_level=level, loss_scale=64.0, verbosity=0, **combines)
    model: nn.Module = net
    if way == "DistributedDataParallel":
        model = parallel.DistributedDataParallel(net, delay_allreduce=True)
    elif way == "torch_ddp":
        model = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
    reducer = parallel.Reducer(net) if way == "Reducer" else None
    for _ in range(3):
        optimizer.zero_grad()
        with amp.scale_loss(model(batch).pow(2).mean(), optimizer) as scaled:
            scaled.backward()
        if reducer is not None:
            reducer.reduce()
        optimizer.step()
    return weights(net)


def main() -> None:
    """Join, train in every way, say the result."""
    rank, store = int(sys.argv[1]), sys.argv[2]
    vendor = get_vendor(VENDOR)
    activate(VENDOR, devices=2, memory="1GiB")
    torch.get_device_module(vendor.device_type).set_device(rank)
    dist.init_process_group(vendor.dist_backend, init_method=f"file://{store}", rank=rank, world_size=2)
    print(json.dumps({way: train(way, rank, f"{vendor.device_type}:{rank}") for way in WAYS}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
