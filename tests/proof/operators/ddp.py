"""Two processes train with DistributedDataParallel and record their second step; then again, with a fault in rank 1.

torchrun is not needed: python -m tests.proof.operators.ddp VENDOR FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import start_processes
from torch.nn.parallel import DistributedDataParallel

from torchferry.proof.recording import operator_recorder

from .names import CPU


def work(rank: int, vendor: str, folder: str) -> None:
    """One process: without and with a fault; on the CPU, without."""
    device, backend = CPU, "gloo"
    if vendor != CPU:
        from torchferry.sim import activate
        from torchferry.vendors.registry import get_vendor

        activate(vendor, devices=2)
        device, backend = f"{get_vendor(vendor).device_type}:{rank}", get_vendor(vendor).dist_backend
    dist.init_process_group(backend, init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    train(rank, device, Path(folder) / f"equal-{rank}.operators", fault=False)
    if vendor != CPU:
        train(rank, device, Path(folder) / f"other rank-{rank}.operators", fault=rank == 1)
    dist.destroy_process_group()


def train(rank: int, device: str, file: Path, fault: bool) -> None:
    """Two steps; the fault is in the data of the second."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    recorder = operator_recorder(file)
    for step in range(2):
        if step == 1:
            recorder.start()
        optimizer.zero_grad()
        batch = torch.linspace(-1, 1 + rank, 12).view(3, 4)
        if fault and step == 1:
            batch = batch + 0.5
        model(batch.to(device)).square().mean().backward()
        optimizer.step()
    recorder.stop()


if __name__ == "__main__":
    start_processes(work, tuple(sys.argv[1:]), nprocs=2, start_method="fork")
