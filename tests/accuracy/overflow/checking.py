"""Runs small trainings under the check, in forks."""

from __future__ import annotations

import os
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forking import run_forked
from torchferry.accuracy.overflow.model import SUFFIX, OverflowEvent, OverflowFindings, Standing, load
from torchferry.accuracy.record.settings import OverflowSettings

HEAD = """\
import os, signal, torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
"""


def training(
    body: str,
    model: str = "nn.Linear(4, 4)",
    optimizer: str = "torch.optim.SGD(model.parameters(), lr=0.1)",
    steps: int = 3,
    step: str = "optimizer.step()",
    before: str = "",
) -> str:
    """A program that trains this model; the body makes a loss of `model` and calls backward."""
    inner = textwrap.indent(textwrap.dedent(f"{body.strip()}\n{step}\n"), "    ")
    return (
        f"{HEAD}{textwrap.dedent(before)}\nmodel = {model}\noptimizer = {optimizer}\n"
        f"for number in range({steps}):\n    optimizer.zero_grad()\n{inner}print('trained to the end')\n"
    )


@dataclass(frozen=True)
class Run:
    """What a check found, and how its program ended."""

    findings: OverflowFindings
    ended: subprocess.CompletedProcess[str]
    record: Path

    @property
    def first(self) -> OverflowEvent:
        """The overflow; there must be one."""
        event = self.findings.first
        assert event is not None, self.ended
        return event

    def of(self, standing: Standing) -> list[OverflowEvent]:
        """The events of this standing."""
        return [event for event in self.findings.events if event.standing is standing]


def check(program: str, folder: Path, steps: int | None = 3, **options: Any) -> Run:
    """Check a program of one process, as its settings say."""
    record = folder / "overflow.h5"
    settings = OverflowSettings(
        str(record),
        str(folder),
        "train.py",
        steps=None,
        device="cpu",
        updates=steps,
        **options,
    )
    ended = run_forked(program, {**os.environ, **settings.environment()}, folder)
    files = list(folder.glob(f"*{SUFFIX}"))
    assert len(files) == 1, ended
    return Run(load(files[0]), ended, record)
