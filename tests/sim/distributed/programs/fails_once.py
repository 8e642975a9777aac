"""A program whose last rank dies in the middle of its first attempt; torchrun starts all of them again."""

from __future__ import annotations

import os
import signal
import sys

import torch
import torch.distributed as dist

import torchferry.sim
from torchferry.vendors.registry import get_vendor

vendor = get_vendor(sys.argv[1])
torchferry.sim.activate(vendor.name, devices=2)
dist.init_process_group(vendor.dist_backend)
total = torch.ones(1, device=f"{vendor.device_type}:{dist.get_rank()}")
dist.all_reduce(total)
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if attempt == 0 and dist.get_rank() == dist.get_world_size() - 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(total)
sys.stdout.write(f"attempt {attempt}: {total.item():g}\n")
dist.destroy_process_group()
