"""The recorder is on for one step of a proof's run: in a process of its own, as the launcher starts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.forking import run_forked
from torchferry.proof.operators import SUFFIX, TracedCall, read_trace
from torchferry.proof.settings import ProofSettings

PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 2)
first, second = (torch.optim.SGD([each], lr=0.1) for each in model.parameters())
for number in range(4):
    loss = model(torch.full((1, 2), float(number + 1))).sum()
    loss.backward()
    first.step()
    second.step()
    model.zero_grad()
print("whole")
"""


def calls(folder: Path, step: int, rank: int | None = None, **environment: str) -> list[TracedCall] | None:
    """The operators of a step, None if there is no file."""
    settings = ProofSettings(str(folder), steps=3, operators_step=step, operators_rank=rank)
    run = run_forked(PROGRAM, {**os.environ, "TORCHFERRY_PROVE": settings.encode(), **environment})
    assert run.stderr == ""
    files = list(folder.glob(f"*{SUFFIX}"))
    return list(read_trace(files[0]).calls) if files else None


def updates(found: list[TracedCall] | None) -> list[tuple[int, ...]]:
    """The shapes of the parameters that optimizers have changed."""
    assert found is not None
    return [call.inputs[0].facts.shape for call in found if call.phase == "optimizer" and call.name == "add"]


@pytest.mark.parametrize(
    ("step", "parameter", "has_a_forward_pass"),
    [(1, (2, 2), True), (2, (2,), False)],
)
def test_from_the_end_of_the_step_before_to_the_end_of_the_step(
    tmp_path: Path, step: int, parameter: tuple[int, ...], has_a_forward_pass: bool
) -> None:
    """Two optimizers take turns: their steps are counted together."""
    found = calls(tmp_path, step, rank=1, RANK="1")
    assert updates(found) == [parameter]
    assert any(call.name == "addmm" for call in found or ()) == has_a_forward_pass


def test_of_one_rank_only(tmp_path: Path) -> None:
    assert calls(tmp_path, 1, rank=1, RANK="0") is None
