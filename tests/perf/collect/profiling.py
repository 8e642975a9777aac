"""Profiles small programs, each in a fork."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.forking import run_forked
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.perf.collect.settings import CollectOutcome, ProfileSettings, read_outcomes
from torchferry.vendors.registry import get_vendor

HOST = Place(DeviceKind.AS_IS, as_is="cpu")
SIMULATED = Place(DeviceKind.SIMULATED, get_vendor("ascend"), devices=1, shared_randomness=True)

TRAINING = """\
import gc, os, sys, time
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def forward():
    x = torch.randn(4, 8).to(device)
    return nn.functional.cross_entropy(net(x), torch.arange(4).to(device))


def step():
    optimizer.zero_grad()
    forward().backward()
    optimizer.step()


"""
Event = dict[str, Any]


@dataclass
class Run:
    """How a program ended, and what its processes left."""

    ended: subprocess.CompletedProcess[str]
    folder: Path
    told: list[CollectOutcome]

    @cached_property
    def only(self) -> CollectOutcome:
        """By the only process that had something to tell."""
        (told,) = self.told
        return told

    @cached_property
    def events(self) -> list[Event]:
        """Of the only trace, in the order of their beginning."""
        with gzip.open(self.folder / self.only.trace) as file:
            events: list[Event] = json.load(file)["traceEvents"]
        return sorted(events, key=lambda event: float(event["ts"]))

    def named(self, start: str) -> list[Event]:
        """Those whose names begin like this."""
        return [event for event in self.events if event.get("ph") in "Xi" and event["name"].startswith(start)]

    def steps(self) -> dict[str, Event]:
        """The marks of steps."""
        return {event["name"]: event for event in self.named("ProfilerStep#")}

    def inside(self, mark: Event) -> Iterator[str]:
        """The names of all that lies in a mark."""
        begin, end = float(mark["ts"]), float(mark["ts"]) + float(mark["dur"])
        for event in self.events:
            if event.get("ph") == "X" and begin <= float(event["ts"]):
                if float(event["ts"]) + float(event["dur"]) <= end and event is not mark:
                    yield event["name"]


def profiled(
    code: str, folder: Path, place: Place = HOST, steps: tuple[int, int] = (2, 3), **more: Any
) -> Run:
    """Run code in this folder, and profile it as these settings say."""
    left = Path(tempfile.mkdtemp(dir=folder))
    settings = ProfileSettings(str(left), *steps, device=place.device_type, simulated=place.is_simulated)
    settings = replace(settings, vendor=place.vendor_name, **more)
    environment = {**environment_at(place, settings), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ended = run_forked(code, environment, folder)
    return Run(ended, left, read_outcomes(left))
