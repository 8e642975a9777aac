"""In the reference torch.compile captures what a program compiles, and computes as without it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import torch
from torchferry import runtime

runtime.activate(runtime.LayerSettings(runtime.REFERENCE))
model = torch.nn.Linear(3, 3).cuda()
values = torch.ones(2, 3, device="cuda")
assert torch.equal(torch.compile(model)(values), model(values))
"""


def test_a_compiled_model_computes_as_the_model_itself() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
