"""A program that ends while collectives run, whose tensors nobody but a thread of the group still holds.

ends_early.py VENDOR URL RANK LEAVE      LEAVE: whether it destroys the group first (yes, no)
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist

import torchferry.sim
from torchferry.vendors.registry import get_vendor

vendor, rank = get_vendor(sys.argv[1]), int(sys.argv[3])
torchferry.sim.activate(vendor.name, devices=2)
dist.init_process_group(vendor.dist_backend, init_method=sys.argv[2], rank=rank, world_size=2)
for _ in range(200):
    tensor = torch.ones(1_000_000, device=f"{vendor.device_type}:{rank}")
    tensor.kept = "by its Python object"  # type: ignore[attr-defined]
    dist.all_reduce(tensor, async_op=True)
    del tensor
if sys.argv[4] == "yes":
    dist.destroy_process_group()
