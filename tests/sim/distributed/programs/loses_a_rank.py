"""A program whose second rank is killed while the first waits for it in a collective.

loses_a_rank.py VENDOR URL RANK
"""

from __future__ import annotations

import os
import signal
import sys

import torch
import torch.distributed as dist

import torchferry.sim
from torchferry.vendors.registry import get_vendor

vendor, rank = get_vendor(sys.argv[1]), int(sys.argv[3])
torchferry.sim.activate(vendor.name, devices=2)
dist.init_process_group(vendor.dist_backend, init_method=sys.argv[2], rank=rank, world_size=2)
tensor = torch.ones(100_000, device=f"{vendor.device_type}:{rank}")
dist.all_reduce(tensor)
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
work = dist.all_reduce(tensor, async_op=True)
try:
    work.wait()
except RuntimeError as error:
    print(
        f"lost: completed {work.is_completed()}, success {work.is_success()}, {type(work.exception()).__name__}"
    )
    print(error)
