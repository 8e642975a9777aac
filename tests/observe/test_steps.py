"""What a step of a training is, for every command: the same number for the same program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forking import run_forked
from torchferry.accuracy.model import Kept
from torchferry.accuracy.overflow import model as overflow
from torchferry.accuracy.record.outputs import outcomes
from torchferry.accuracy.record.settings import OverflowSettings, RecordSettings, WatchSettings
from torchferry.launch.parts import PartSettings
from torchferry.perf.collect.settings import ProfileSettings, read_outcomes
from torchferry.proof.recordings import find_recordings
from torchferry.proof.settings import ProofSettings
from torchferry.readiness import capture_json
from torchferry.readiness.capture.settings import SUFFIX, CaptureSettings

HEAD = """\
import torch
from torch import nn

first, second = nn.Linear(2, 2), nn.Linear(2, 2)


def optimizer_of(model, kind=torch.optim.SGD):
    return kind(model.parameters(), lr=0.01)


def loss_of(model, scale=1.0):
    return model(torch.ones(3, 2)).square().sum() * scale


def train(model, optimizer):
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()


"""
# Programs, the number of their steps, and of those that change weights.
PROGRAMS = {
    "plain": ("one = optimizer_of(first)\nfor _ in range(3): train(first, one)", 3, 3),
    "accumulation": (
        """
one = optimizer_of(first)
for number in range(1, 7):
    loss_of(first).backward()
    if number % 3 == 0:
        one.step(); one.zero_grad()
""",
        2,
        2,
    ),
    "two optimizers": (
        """
one, other = optimizer_of(first), optimizer_of(second)
for _ in range(3):
    train(first, one); train(second, other)
""",
        3,
        3,
    ),
    "one that never steps": (
        "one, unused = optimizer_of(first), optimizer_of(second)\nfor _ in range(4): train(first, one)",
        4,
        4,
    ),
    "one that steps seldom": (
        """
one, seldom = optimizer_of(first), optimizer_of(second)
for number in range(1, 7):
    if number % 3 == 0: train(second, seldom)
    train(first, one)
""",
        6,
        6,
    ),
    "one after the other": (
        """
one = optimizer_of(first)
for _ in range(3): train(first, one)
other = optimizer_of(second)
for _ in range(3): train(second, other)
""",
        6,
        6,
    ),
    "one inside another": (
        """
class Around(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups[0]["params"], {})

    def step(self):
        self.inner.step()


one = Around(optimizer_of(first))
for _ in range(3): train(first, one)
""",
        3,
        3,
    ),
    "a class that calls its base": (
        """
class Own(torch.optim.Adam):
    def step(self, closure=None):
        return super().step(closure)


one = optimizer_of(first, Own)
for _ in range(3): train(first, one)
""",
        3,
        3,
    ),
    "a closure": (
        """
one = torch.optim.LBFGS(first.parameters(), max_iter=3)


def closure():
    one.zero_grad()
    loss = loss_of(first)
    loss.backward()
    return loss


for _ in range(2): one.step(closure)
""",
        2,
        2,
    ),
    "a scaler that skips": (
        """
one = optimizer_of(first)
scaler = torch.amp.GradScaler("cpu")
for number in range(4):
    one.zero_grad()
    scaler.scale(loss_of(first, float("inf") if number == 1 else 1.0)).backward()
    scaler.step(one); scaler.update()
""",
        4,
        3,
    ),
    "a scaler with two optimizers, of which one skips": (
        """
one, other = optimizer_of(first), optimizer_of(second)
scaler = torch.amp.GradScaler("cpu")
for number in range(3):
    one.zero_grad(); other.zero_grad()
    scaler.scale(loss_of(first, float("inf") if number == 1 else 1.0) + loss_of(second)).backward()
    scaler.step(one); scaler.step(other); scaler.update()
""",
        3,
        3,
    ),
}


def _of_outcome(folder: Path) -> int:
    (outcome,) = outcomes(folder)
    return outcome.steps


def _of_capture(folder: Path) -> int:
    (file,) = folder.glob(f"*{SUFFIX}")
    return capture_json.load(file.read_text("utf-8"), file.name).steps


def _of_check(folder: Path) -> int:
    (file,) = folder.glob(f"*{overflow.SUFFIX}")
    return overflow.load(file).steps


def _of_profile(folder: Path) -> int:
    (told,) = read_outcomes(folder)
    return told.made


def _of_recording(folder: Path) -> int:
    (recording,) = find_recordings(folder)
    return len({step.step for step in recording.steps()})


def _last_of_recording(folder: Path) -> int:
    (recording,) = find_recordings(folder)
    return max(step.step for step in recording.steps())


# Each command: what tells a process to take part to the program's own end, how many steps it has seen, and whether it
# counts those that change weights alone.
COMMANDS: dict[str, tuple[Callable[[str], PartSettings], Callable[[Path], int], bool]] = {
    "record": (
        lambda folder: RecordSettings(f"{folder}/a.h5", folder, kept=Kept.STATISTICS, steps=None),
        _of_outcome,
        False,
    ),
    "watch": (lambda folder: WatchSettings(f"{folder}/a.h5", folder, steps=None), _of_outcome, False),
    "profile": (lambda folder: ProfileSettings(folder, 90, 91), _of_profile, False),
    "overflow": (
        lambda folder: OverflowSettings(f"{folder}/a.h5", folder, steps=None, keep_going=True),
        _of_check,
        True,
    ),
    "ops": (lambda folder: CaptureSettings(folder, "train.py", None), _of_capture, True),
    "prove": (lambda folder: ProofSettings(folder, None), _of_recording, True),
    "prove, numbers": (lambda folder: ProofSettings(folder, None), _last_of_recording, False),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_counts_the_same_steps(program: str, command: str, tmp_path: Path) -> None:
    code, steps, updates = PROGRAMS[program]
    part, count, is_of_updates = COMMANDS[command]
    ended = run_forked(HEAD + code, {**os.environ, **part(str(tmp_path)).environment()}, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert count(tmp_path) == (updates if is_of_updates else steps)
