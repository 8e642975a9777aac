"""CUDA's names mean the vendor's device in every process of a program, whichever way the program was started."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.commands import make

from .ways import ferry_run, python, with_plugin

CHILDREN = """\
import subprocess, sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Devices(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return str(torch.device("cuda", index))


def work(index, queue):
    queue.put(str(torch.ones(2, device="cuda:1").device))


def main():
    print(torch.ones(2).cuda().device, torch.cuda.is_available())
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, (queue,), nprocs=1)
    print(queue.get())
    for start in "spawn", "fork":
        print(*DataLoader(Devices(), None, num_workers=1, multiprocessing_context=start))
    code = "import torch; print(torch.ones(3).cuda().device)"
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    main()
"""
EXPECTED = "npu:0 True\nnpu:1\nnpu:0 npu:1\nnpu:0 npu:1\nnpu:0\n"
SIMULATED = "torchferry: torch_npu is not installed: running on a simulated npu device\n"
Way = Callable[[Path], subprocess.CompletedProcess[str]]

WAYS: dict[str, Way] = {
    "ferry run": lambda folder: ferry_run("-q", "--to", "ascend", folder / "train.py"),
    "variable": lambda folder: python(folder / "train.py", TORCHFERRY_TO="ascend"),
    "import, PyTorch told not to call us": lambda folder: python(
        folder / "auto.py", TORCHFERRY_TO="ascend", TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    ),
    "real plugin, import": lambda folder: python(folder / "auto.py", PYTHONPATH=with_plugin(folder / "site")),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_process_takes_part(tmp_path: Path, way: str) -> None:
    make(tmp_path, train=CHILDREN, auto=f"import torchferry.auto\n{CHILDREN}")
    result = WAYS[way](tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == EXPECTED
    chosen_unasked = way in ("variable", "import, PyTorch told not to call us")
    assert result.stderr == (SIMULATED if chosen_unasked else "")


TRAINING = """\
import os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 2).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(2):
    loss = model(torch.full((3, 4), rank + 1.0, device="cuda")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weight = model.module.weight.detach().sum()
other = weight.clone()
dist.broadcast(other, 0)
known = dist.get_backend() in ("nccl", "hccl")
sys.stdout.write(f"{weight.device} {bool(weight == other)} {known}\\n")  # at once: two processes write here
dist.destroy_process_group()
"""


def test_an_unchanged_distributed_module_in_two_processes(tmp_path: Path) -> None:
    make(tmp_path / "package", train=TRAINING)
    result = python(
        *("-m", "torchferry", "run", "--sim", "--nproc", 2, "-m", "package.train"),
        TORCHFERRY_TO="ascend",
        PYTHONPATH=str(tmp_path),
    )
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["npu:0 True True", "npu:1 True True"]
    assert "processes that used it: 2" in result.stderr
