"""Records small programs, each in a fork."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.forking import run_forked
from torchferry.accuracy.compare.matching import CallSequence, match_sites
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.record.outputs import WrittenRecord, files_of, outcomes
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.vendors.registry import get_vendor

HOST = Place(DeviceKind.AS_IS, as_is="cpu")
REFERENCE = Place(DeviceKind.REFERENCE)  # the CPU in the place of CUDA
SIMULATED = Place(DeviceKind.SIMULATED, get_vendor("ascend"), devices=2, shared_randomness=True)

TRAINING = """\
import os, signal, sys, threading, time
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4 * 6 * 6, 5)

    def forward(self, x):
        return self.head(self.drop(torch.relu_(self.norm(self.conv(x)))).flatten(1))


net = Net().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


def step():
    optimizer.zero_grad()
    x = torch.randn(4, 3, 6, 6).to(device)
    nn.functional.cross_entropy(net(x), torch.arange(4).to(device)).backward()
    optimizer.step()


"""


@dataclass
class Run:
    """How a program ended, what its processes told, and their files."""

    ended: subprocess.CompletedProcess[str]
    outcomes: list[WrittenRecord]
    paths: list[Path]

    @property
    def record(self) -> Record:
        """Of the only process."""
        (path,) = self.paths
        return open_record(path)

    def operators(self) -> list[str]:
        """Of the only record, in order, without aten::."""
        with self.record as record:
            return [call.operator.removeprefix("aten::") for call in record.calls]


def recorded(code: str, folder: Path, place: Place = HOST, **settings: Any) -> Run:
    """Run code in this folder, and record it as these settings say."""
    told = folder / "told"
    told.mkdir(exist_ok=True)
    output = folder / "out.h5"
    asked = RecordSettings(str(output), str(told), "train.py", device=place.device_type)
    asked = replace(asked, simulated=place.is_simulated, **settings)
    environment = {**environment_at(place, asked), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ended = run_forked(code, environment, folder)
    return Run(ended, outcomes(told), files_of(output))


def equal_outputs(mine: Record, golden: Record) -> tuple[int, list[str]]:
    """How many outputs were compared, and the operators whose outputs differ."""
    count, wrong = 0, []
    for match in match_sites(CallSequence(mine.calls), CallSequence(golden.calls), is_replay=True):
        if match.mine is None or match.golden is None:
            continue
        ours, theirs = mine.calls[match.mine], golden.calls[match.golden]
        for one, other in zip(ours.outputs, theirs.outputs, strict=True):
            if one.offset is not None and other.offset is not None:
                count += 1
                if bytes(mine.raw(one)) != bytes(golden.raw(other)) and ours.operator not in wrong:
                    wrong.append(ours.operator)
    return count, wrong
