"""Collectives of the vendor's real plugin that go wrong between two ranks; each line of output is after the case's name.

python -m tests.emulate.collectives.failing_rank RANK RANKS FOLDER CASE...
"""

from __future__ import annotations

import sys
import traceback

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup

import torchferry.emulate

Group = ProcessGroup


def absent(group: Group, rank: int) -> None:
    """Rank 1 never comes."""
    if rank == 0:
        dist.all_reduce(torch.ones(4, device="npu"), group=group)


def late(group: Group, rank: int) -> None:
    """Rank 1 comes once and not again."""
    dist.all_reduce(torch.ones(4, device="npu"), group=group)
    torch.npu.synchronize()
    absent(group, rank)


def counts(group: Group, rank: int) -> None:
    dist.all_reduce(torch.ones(3 + rank, device="npu"), group=group)


def dtypes(group: Group, rank: int) -> None:
    dist.all_reduce(torch.ones(4, dtype=(torch.float16, torch.float32)[rank], device="npu"), group=group)


def operations(group: Group, rank: int) -> None:
    tensor = torch.ones(4, device="npu")
    if rank == 0:
        dist.all_reduce(tensor, group=group)
    else:
        dist.broadcast(tensor, 0, group=group)


def main(rank: int, ranks: int, folder: str, names: list[str]) -> None:
    """Say what each case raised; the plugin may end the process before it does so itself."""
    torchferry.emulate.activate("ascend", devices=ranks)
    torch.accelerator.set_device_index(rank)
    dist.init_process_group("hccl", f"file://{folder}/store", world_size=ranks, rank=rank)
    others = dist.new_group(backend="gloo")
    for name in names:
        group = dist.new_group()
        assert isinstance(group, Group)
        print(f"case {name}", flush=True)
        try:
            globals()[name](group, rank)
            torch.npu.synchronize()
        except Exception:
            print(traceback.format_exc(), flush=True)
        dist.barrier(group=others)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
