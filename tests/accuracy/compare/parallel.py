"""A small training in one process or several, with one mistake or none, each recorded in a fork."""

from __future__ import annotations

import os
from pathlib import Path

from tests.forking import run_forked
from torchferry.accuracy.compare.ranks import compare_ranks
from torchferry.accuracy.compare.stages import RanksComparison
from torchferry.accuracy.file.reader import open_records
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place

_HOST = Place(DeviceKind.AS_IS, as_is="cpu")
PROGRAM = """\
import os, sys
import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

WORLD, WAY, MISTAKE, STEPS = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
BATCH = 8


class Block(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 12)
        self.norm = nn.BatchNorm1d(12) if norm else nn.LayerNorm(12)
        self.drop = nn.Dropout(0.5 if MISTAKE == "dropout" else 0.0)

    def forward(self, x):
        return self.norm(x + self.drop(self.down(self.act(self.up(x)))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = Block(False), Block(MISTAKE == "batch norm"), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.two(self.one(x)))


def samples(rank, step):
    first = step * BATCH
    if WORLD == 1 or WAY == "tp":
        return list(range(first, first + BATCH))
    found = list(range(first + rank, first + BATCH, WORLD))
    if MISTAKE == "contiguous":
        found = list(range(first + rank * BATCH // WORLD, first + (rank + 1) * BATCH // WORLD))
    if MISTAKE == "same batch":
        found = list(range(first, first + BATCH // WORLD))
    if MISTAKE == "twice" and rank == 1:
        found[0] = first
    if MISTAKE == "uneven":
        found = list(range(first, first + BATCH - 3) if rank == 0 else range(first + BATCH - 3, first + BATCH))
    return found


def reduce_by_hand(net, rank):
    if MISTAKE == "lost" and rank == WORLD - 1:
        for parameter in net.parameters():
            parameter.grad.zero_()
    for name, parameter in net.named_parameters():
        if MISTAKE == "left out" and name == "two.up.weight":
            continue
        distributed.all_reduce(parameter.grad)
        if MISTAKE != "summed":
            parameter.grad.div_(WORLD)


def wrapped(net):
    if WAY in ("ddp", "zero"):
        return DistributedDataParallel(net, gradient_as_bucket_view=MISTAKE == "bucket view")
    if WAY == "fsdp":
        from torch.distributed.fsdp import fully_shard
        for part in (net.one, net.two, net):
            fully_shard(part)
    if WAY == "tp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        plan = {f"{block}.{name}": kind() for block in ("one", "two")
                for name, kind in (("up", ColwiseParallel), ("down", RowwiseParallel))}
        parallelize_module(net, init_device_mesh("cpu", (WORLD,)), plan)
    return net


def wrong_gelu(x, *, approximate="none"):
    result = x * 0.5 * (1 + torch.erf(x / 2**0.5))
    result.view(-1)[-8:] = 0
    return result


def train(rank):
    if MISTAKE == "wrong kernel" and rank == 1:
        kernels = torch.library.Library("aten", "IMPL")
        kernels.impl("gelu", wrong_gelu, "CPU")
    if WORLD > 1:
        distributed.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meeting", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    x, y = torch.randn(32, 12), torch.randint(0, 5, (32,))
    if MISTAKE == "ignored labels":
        y[:3] = -100
        y[4] = -100
    torch.manual_seed(1 + (rank if MISTAKE == "weights" else 0))
    net = Net()
    torch.manual_seed(2 + rank)
    net = wrapped(net) if WORLD > 1 else net
    lr = 0.01 * (WORLD if MISTAKE == "learning rate" else 1)
    if WAY == "zero" and WORLD > 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=lr, foreach=True)
    else:
        optimizer = torch.optim.AdamW(net.parameters(), lr=lr, foreach=WAY != "tp")
    for step in range(STEPS):
        optimizer.zero_grad()
        chosen, passes = samples(rank, step), 2 if MISTAKE == "accumulated" and WORLD == 1 else 1
        for at in range(passes):
            part = chosen[at * len(chosen) // passes:(at + 1) * len(chosen) // passes]
            out = net(x[part])
            if MISTAKE == "one more call" and rank == 1:
                out = out * 1.01
            loss = functional.cross_entropy(out, y[part], reduction="sum" if MISTAKE == "sum of losses" else "mean")
            if MISTAKE == "loss times two" and WORLD > 1:
                loss = loss * 2
            (loss / passes).backward()
        if WAY == "by hand" and WORLD > 1:
            reduce_by_hand(net, rank)
        if MISTAKE == "clipped":
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()


if WORLD == 1:
    train(0)
else:
    import torch.multiprocessing
    torch.multiprocessing.start_processes(train, nprocs=WORLD, start_method="fork")
"""


def trained(folder: Path, world: int, way: str = "ddp", mistake: str = "", steps: int = 1) -> Path:
    """The record of this training; those of several processes stand beside it."""
    output = folder / f"{world}.h5"
    told = folder / f"told{world}"
    told.mkdir(parents=True)
    settings = RecordSettings(str(output), str(told), "train.py", device="cpu", steps=steps)
    environment = {**environment_at(_HOST, settings), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    (folder / "meeting").unlink(missing_ok=True)
    ended = run_forked(PROGRAM, environment, folder, [str(world), way, mistake, str(steps)])
    assert open_records(output), ended
    return output


def held(mine: Path, golden: Path) -> RanksComparison:
    """The comparison of two records of several processes, or one."""
    sides = [open_records(each) for each in (mine, golden)]
    return compare_ranks(sides[0], sides[1], (mine.name, golden.name))
