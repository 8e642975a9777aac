"""A program for several GPUs that starts its ranks itself, as the classic trainers do; unchanged CUDA code."""
# ruff: noqa -- written as such programs are

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        assert torch.cuda.is_available()
        return torch.full((3,), float(i)), torch.device("cuda").type == "cuda"


def train(model, rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 3, device=rank) * (rank + 1)).square().mean().backward()
        optimizer.step()


def main_worker(gpu, ngpus_per_node, store):
    torch.cuda.set_device(gpu)
    dist.init_process_group(
        backend="nccl", init_method=f"file://{store}", world_size=ngpus_per_node, rank=gpu
    )
    assert dist.get_backend() == "nccl"
    found = {}
    torch.manual_seed(0)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))).cuda(
        gpu
    )
    model = DDP(model, device_ids=[gpu], output_device=gpu)
    train(model, gpu)
    sums = [torch.zeros(1).cuda() for _ in range(ngpus_per_node)]
    dist.all_gather(sums, model.module[0].weight.detach().sum().view(1))
    assert sums[0].item() == sums[1].item()
    found["ddp"] = str(next(model.parameters()).device)

    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp import MixedPrecision

    precision = MixedPrecision(param_dtype=torch.float16, reduce_dtype=torch.float16)
    train(FSDP(nn.Linear(3, 4).cuda(), device_id=torch.cuda.current_device()), gpu)
    model = FSDP(nn.Linear(3, 4), device_id=gpu, mixed_precision=precision)
    train(model, gpu)
    found["fsdp"] = str(next(model.parameters()).device)
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        fully_shard = None
    if fully_shard:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor

        mesh = init_device_mesh("cuda", (ngpus_per_node,), mesh_dim_names=("dp",))
        model = nn.Linear(3, 4, device="cuda")
        fully_shard(model, mesh=mesh)
        train(model, gpu)
        whole = torch.arange(8.0).cuda()
        sharded = distribute_tensor(whole, mesh, [Shard(0)])
        assert sharded.to_local().numel() == 4 and torch.equal((sharded * 2).full_tensor(), whole * 2)
        found["mesh"] = f"{mesh.device_type} {sharded.device.type == 'cuda'}"
    gloo = dist.new_group(backend="gloo")
    nccl = dist.new_group(ranks=[0, 1], backend="nccl")
    assert dist.get_backend(gloo) == "gloo" and dist.get_backend(nccl) == "nccl"
    total = torch.tensor([1.0], device=f"cuda:{gpu}")
    dist.all_reduce(total, op=dist.ReduceOp.SUM, group=nccl)
    dist.barrier(device_ids=[gpu])
    found["total"] = total.item()
    sys.stdout.write(f"rank {gpu}: {sorted(found.items())}\n")
    sys.stdout.flush()
    dist.destroy_process_group()


def main():
    settings = {"num_workers": 1, "multiprocessing_context": "spawn", "pin_memory": True}
    for images, seen in torch.utils.data.DataLoader(Data(), batch_size=4, **settings):
        assert seen.all() and images.is_pinned() and images.cuda(non_blocking=True).is_cuda
    sys.stdout.write("loader: done\n")
    sys.stdout.flush()
    ngpus_per_node = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main_worker, nprocs=ngpus_per_node, args=(ngpus_per_node, os.path.join(folder, "store")))


if __name__ == "__main__":
    main()
