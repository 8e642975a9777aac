"""Runs code on a simulated device, or on the CPU, in a fork."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.forking import run_forked
from torchferry import variables
from torchferry.launch.environment import child_environment
from torchferry.sim.environment import settings_for
from torchferry.vendors.registry import get_vendor

# What the placeholders of the guide's snippets stand for.
MODEL = """\
import torch
from torch import nn

torch.manual_seed(0)
device = "npu:0" if hasattr(torch, "npu") else "cpu"
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
dataloader = [torch.ones(3, 4).to(device) for _ in range(2)]
"""


def run_code(
    code: str, folder: Path, vendor: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it in a folder."""
    known = {name: value for name, value in os.environ.items() if name not in variables.ALL}
    if vendor:
        of_sim = get_vendor(vendor)
        simulated = settings_for(of_sim, 2, shared_randomness=True)
        known = child_environment(known, of_sim, simulated, None)
    return run_forked(code, {**known, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **environment}, folder)
