"""A program that joins a group in the way it is told, adds up the ranks, and says what it saw.

joins.py VENDOR [URL RANK RANKS]    without a URL: through the environment, as under torchrun
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist

import torchferry.sim
from torchferry.vendors.registry import get_vendor

vendor = get_vendor(sys.argv[1])
torchferry.sim.activate(vendor.name, devices=4)


def join() -> None:
    """By the environment with neither a backend nor a device, or by a URL with a device."""
    if len(sys.argv) == 2:
        rank = int(os.environ.get("LOCAL_RANK", os.environ["RANK"]))
        getattr(torch, vendor.device_type).set_device(rank)
        return dist.init_process_group()
    rank, ranks = map(int, sys.argv[3:])
    where: dict[str, Any] = {"init_method": sys.argv[2], "rank": rank, "world_size": ranks}
    return dist.init_process_group(device_id=torch.device(vendor.device_type, rank), **where)


try:
    dist.init_process_group("nccl")  # says no before it waits for anybody
except RuntimeError as error:
    assert f"use backend='{vendor.dist_backend}'" in str(error), error
else:
    raise AssertionError("nccl")
join()
total = torch.full((1,), dist.get_rank() + 1.0, device=vendor.device_type)
if len(sys.argv) > 2:
    total = total.to(dist.group.WORLD.bound_device_id)
dist.all_reduce(total)
groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
dist.barrier(group=groups[dist.get_rank()])
dist.barrier()
backend = dist.group.WORLD._get_backend(torch.device(vendor.device_type)).name()
# In one piece: ranks write to the same pipe.
sys.stdout.write(f"rank {dist.get_rank()}: {backend} {total.item():g} on {total.device}\n")
dist.destroy_process_group()
