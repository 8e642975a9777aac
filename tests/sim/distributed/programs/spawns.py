"""A program that starts its ranks itself, as the classic ImageNet trainer does."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import torchferry.sim
from torchferry.vendors.registry import get_vendor


def work(rank: int, ranks: int, vendor_name: str, port: int) -> None:
    vendor = get_vendor(vendor_name)
    torchferry.sim.activate(vendor_name, devices=ranks)
    dist.init_process_group(
        vendor.dist_backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
    )
    total = torch.ones(1, device=f"{vendor.device_type}:{rank}")
    dist.all_reduce(total)
    sys.stdout.write(f"rank {rank}: {total.item():g} on {total.device}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, nprocs=2, args=(2, sys.argv[1], int(sys.argv[2])))
