"""The second rank dies between two collectives of the vendor's real plugin.

python -m tests.emulate.collectives.dying_rank RANK RANKS FOLDER
"""

from __future__ import annotations

import os
import signal
import sys

import torch
import torch.distributed as dist

import torchferry.emulate


def main(rank: int, ranks: int, folder: str) -> None:
    torchferry.emulate.activate("ascend", devices=ranks)
    torch.accelerator.set_device_index(rank)
    dist.init_process_group("hccl", f"file://{folder}/store", world_size=ranks, rank=rank)
    tensor = torch.ones(4, device=f"npu:{rank}")
    dist.all_reduce(tensor)
    print(f"rank {rank}: {tensor.tolist()}", flush=True)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tensor)
    print(f"never seen: {tensor.tolist()}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
