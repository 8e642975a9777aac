"""With several processes, the one that made it is told from those that got it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.forking import run_forked
from torchferry.accuracy.overflow.launching import Checked
from torchferry.accuracy.overflow.model import SUFFIX, OverflowFindings, load
from torchferry.accuracy.record.settings import OverflowSettings
from torchferry.launch.supervise import Ending

PROGRAM = """\
import os, torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        y = model(torch.ones(3, 4))
        if rank == 1 and step == 1:
            y = (y - y.detach()).sqrt()
        y.sum().backward()
        optimizer.step()


processes.start_processes(train, (os.getcwd(),), nprocs=2, start_method="fork", join=False).join(60)
"""


def found(folder: Path) -> tuple[OverflowFindings, ...]:
    settings = OverflowSettings(
        str(folder / "overflow.h5"), str(folder), "train.py", steps=None, device="cpu",
        updates=4,
    )  # fmt: skip
    run_forked(PROGRAM, {**os.environ, **settings.environment()}, folder)
    return tuple(sorted(map(load, folder.glob(f"*{SUFFIX}")), key=lambda each: each.rank))


def test_the_rank_that_was_first(tmp_path: Path) -> None:
    processes = found(tmp_path)
    assert [(each.rank, each.world) for each in processes] == [(0, 2), (1, 2)]
    first = Checked("train.py", Ending(1, 0), processes).first
    assert first is not None
    findings, event = first
    assert (findings.rank, event.call.node, event.call.step) == (1, "SqrtBackward0", 2)
    assert event.record == str(tmp_path / "overflow.rank1.h5") and Path(event.record).exists()
    assert processes[0].first is None or processes[0].first.why == "given"
