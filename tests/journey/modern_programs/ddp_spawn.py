"""DistributedDataParallel by mp.spawn, with SyncBatchNorm."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, size, port):
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    model = DistributedDataParallel(
        nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda(rank), device_ids=[rank]
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(3):
        loss = nn.functional.cross_entropy(
            model(torch.randn(4, 6).cuda(rank)), torch.randint(0, 3, (4,)).cuda(rank)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(
        train,
        args=(torch.cuda.device_count(), int(os.environ.get("PORT", "29533"))),
        nprocs=torch.cuda.device_count(),
    )
