"""Random programs give on the simulated device what they give on the CPU, errors included."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tools.fuzz_device.program import first_difference
from tools.fuzz_device.state import Raised, Side, difference, observations, run
from tools.fuzz_device.steps import random_step

ROOT = Path(__file__).resolve().parents[2]


def _fuzz(vendor: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.fuzz_device", "--vendor", vendor, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_some_programs() -> None:
    done = _fuzz("ascend", "--programs", "25", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "25 programs, 0 of them different" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("vendor", ["ascend", "cambricon"])
def test_many_programs(vendor: str) -> None:
    done = _fuzz(vendor, "--programs", "3000", "--seed", "100000")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore")
def test_the_cpu_does_what_the_cpu_does() -> None:
    assert [first_difference(random.Random(seed), "cpu", 25) for seed in range(3)] == [""] * 3


def test_a_program_is_the_same_every_time() -> None:
    tensors = [torch.ones(3)]
    words = [[random_step(random.Random(seed), tensors).words for seed in range(20)] for _ in range(2)]
    assert words[0] == words[1] and len(set(words[0])) > 10


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda x: x.add_(1), "version"),
        (lambda x: x.data.add_(1), "values"),
        (lambda x: x.requires_grad_(), "requires_grad"),
        (lambda x: setattr(x, "data", x.t().contiguous()), "shape"),
    ],
)
def test_a_difference_is_seen(change: object, seen: str) -> None:
    one, other = (Side("cpu", [torch.ones(2, 3), torch.ones(2)]) for _ in range(2))
    assert difference(observations(one), observations(other)) == ""
    change(other.tensors[0])  # type: ignore[operator]
    assert f"tensor 0: {seen}" in difference(observations(one), observations(other))


def test_shared_memory_is_seen() -> None:
    x, y = torch.ones(2), torch.ones(2)
    shared, separate = Side("cpu", [x, x.detach()]), Side("cpu", [y, y.clone()])
    assert "storage" in difference(observations(shared), observations(separate))


def test_errors_do_not_depend_on_the_name_of_the_device() -> None:
    def fail(side: Side) -> None:
        raise RuntimeError(f"not on {side.device}:0, a torch.{side.device}.FloatTensor\nand more")

    assert (
        run(fail, Side("npu"))
        == run(fail, Side("mlu"))
        == Raised("RuntimeError", "not on DEVICE, a FloatTensor")
    )
