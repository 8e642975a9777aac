"""Device tensors in several processes of a program: shared as on CUDA, refused as on CUDA, and never waited for in vain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import make

from .ways import ferry_run

PROGRAM = """\
import sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

DEVICE = sys.argv[1]


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((3,), float(index))


class OnDevice(Dataset):
    def __init__(self):
        self.rows = torch.ones(4, 3, device=DEVICE)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.rows[index]  # a view: it takes no memory, and so no worker notices where it is


def to_device(rows):
    return torch.stack(rows).to(DEVICE)


def train(model, received, sent):
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    model(torch.ones(2, 3, device=DEVICE)).sum().backward()
    optimizer.step()
    sent.put((model.weight, model.weight.detach()[0], torch.empty(0, 2, device=DEVICE)))
    received.get()  # the memory must live until the other side has it


def main():
    batches = list(DataLoader(Rows(), 2, num_workers=1, collate_fn=to_device, multiprocessing_context="fork"))
    print("forked workers", *(f"{batch.device} {batch.sum().item()}" for batch in batches))

    model = torch.nn.Linear(3, 1, bias=False).to(DEVICE)
    torch.nn.init.zeros_(model.weight)
    model.share_memory()
    row = model.weight.detach()[0]
    context = mp.get_context("spawn")
    received, sent = context.Queue(), context.Queue()
    process = context.Process(target=train, args=(model, received, sent))
    process.start()
    weight, first, nothing = sent.get()
    print("trained there", model.weight.tolist(), row.tolist())
    print("came back", type(weight).__name__, weight.data_ptr() == model.weight.data_ptr() == first.data_ptr())
    print("empty", tuple(nothing.shape), nothing.device)
    received.put("done")
    process.join()
    print("exit", process.exitcode)

    for name, data, collate in (("use", Rows(), to_device), ("view", OnDevice(), None)):
        loader = DataLoader(
            data, None if collate is None else 2, num_workers=1, collate_fn=collate, multiprocessing_context="fork"
        )
        try:
            print(list(loader))
        except RuntimeError as error:
            print(name, "in forked subprocess" in str(error))


if __name__ == "__main__":
    main()
"""
EXPECTED = """\
forked workers {device} 3.0 {device} 15.0
trained there [[-1.0, -1.0, -1.0]] [-1.0, -1.0, -1.0]
came back Parameter True
empty (0, 2) {device}
exit 0
use True
view True
"""


@pytest.mark.parametrize(
    ("device", "way"), [("cuda:1", ()), pytest.param("npu:1", ("--converted",), marks=pytest.mark.long)]
)
def test_device_tensors_go_from_process_to_process(tmp_path: Path, device: str, way: tuple[str, ...]) -> None:
    make(tmp_path, train=PROGRAM)
    result = ferry_run("--sim", "--to", "ascend", *way, tmp_path / "train.py", device)
    assert result.stdout == EXPECTED.format(device="npu:1"), result.stderr
    assert (
        "processes that used it: 3\n" in result.stderr
    )  # the program, the spawned one, the first loader's worker


FORKS = """\
import multiprocessing, os, sys
import torch

def use(index):
    torch.ones(4, device=f"cuda:{index}").add(1)

worker = multiprocessing.get_context("fork").Process(target=use, args=(0,))
worker.start()
worker.join()
for leave in (lambda: os._exit(0), lambda: sys.exit(0)):
    if os.fork() == 0:
        use(1)
        leave()
    os.wait()
if os.fork() == 0:
    os._exit(0)  # used nothing
os.wait()
"""


def test_forked_processes_are_counted_however_they_end(tmp_path: Path) -> None:
    make(tmp_path, train=FORKS)
    result = ferry_run("--sim", "--to", "ascend", tmp_path / "train.py")
    assert result.returncode == 0, result.stderr
    assert "processes that used it: 3\n" in result.stderr
    assert "npu:0" in result.stderr
    assert "npu:1" in result.stderr


AFTER_USE = """\
import os, sys
import torch

x = torch.ones(4, device="cuda")
x.add(1)
if os.fork() == 0:
    x.mul_(3)  # nothing new is allocated: this a fork can do
    sys.exit(0)
os.wait()
os._exit(0)
"""


def test_a_fork_is_not_charged_with_what_its_parent_did(tmp_path: Path) -> None:
    make(tmp_path, train=AFTER_USE)
    report = tmp_path / "summary.json"
    result = ferry_run("-q", "--sim", "--to", "ascend", "-o", report, tmp_path / "train.py")
    assert result.returncode == 0, result.stderr
    calls = {operator["name"]: operator["calls"] for operator in json.loads(report.read_text())["operators"]}
    assert calls["aten::mul.out"] == calls["aten::add.out"] == 1
