"""The layer in the processes that a program starts: spawned ranks, workers of data loaders; a program's exit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forking import run_forked
from tests.sim.checking import ROOT, VENDORS
from torchferry.launch.environment import child_environment
from torchferry.runtime import LayerSettings
from torchferry.sim.environment import settings_for
from torchferry.vendors.registry import get_vendor

PROGRAMS = Path(__file__).parent / "programs"


def _environment(vendor_name: str, **more: str) -> dict[str, str]:
    """That of a program which `ferry run --sim` starts."""
    vendor = get_vendor(vendor_name)
    ours = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    sim = settings_for(vendor, devices=2, memory="1GiB")
    return child_environment(ours, vendor, sim, LayerSettings(vendor_name))


def _run(vendor_name: str, *command: str, **more: str) -> str:
    """What a program prints, started as `ferry run --sim` starts it."""
    environment = _environment(vendor_name, **more)
    run = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr[-4000:]
    return run.stdout


@pytest.mark.parametrize(
    "vendor", [VENDORS[0], *(pytest.param(name, marks=pytest.mark.long) for name in VENDORS[1:])]
)
def test_ranks_and_workers(vendor: str) -> None:
    printed = _run(vendor, str(PROGRAMS / "parallel.py"))
    kind = get_vendor(vendor).device_type
    assert "loader: done\n" in printed
    for rank in range(2):
        found = [
            ("ddp", f"{kind}:{rank}"),
            ("fsdp", f"{kind}:{rank}"),
            ("mesh", f"{kind} True"),
            ("total", 2.0),
        ]
        assert f"rank {rank}: {found}\n" in printed, printed


@pytest.mark.parametrize(
    ("variables", "code", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1"}, "", "1"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "", "0"),
        ({}, "os.environ['CUDA_VISIBLE_DEVICES'] = '0'", "1"),
        ({}, "os.environ['CUDA_VISIBLE_DEVICES'] = ''", "0"),
        ({}, "", "2"),
    ],
    ids=["set before", "none", "set after import torch", "none after import torch", "not set"],
)
def test_visible_devices(variables: dict[str, str], code: str, expected: str) -> None:
    program = f"import os, torch\n{code}\nprint(torch.cuda.device_count(), torch.cuda.is_available())"
    run = run_forked(program, _environment(VENDORS[0], **variables))
    assert (run.stdout, run.returncode) == (f"{expected} {expected != '0'}\n", 0), run.stderr


LAUNCHER = """
import os, subprocess, sys
import torch
child = [sys.executable, "-c", "import torch; print(torch.cuda.device_count())"]
environment = dict(os.environ)
print(subprocess.run(child, env=environment, capture_output=True, text=True).stdout.strip())
environment["CUDA_VISIBLE_DEVICES"] = "1"
print(subprocess.run(child, env=environment, capture_output=True, text=True).stdout.strip())
del environment["CUDA_VISIBLE_DEVICES"]
print(subprocess.run(child, env=environment, capture_output=True, text=True).stdout.strip())
"""


def test_a_program_that_gives_each_child_its_own_devices() -> None:
    assert _run(VENDORS[0], "-c", LAUNCHER, CUDA_VISIBLE_DEVICES="").split() == ["0", "1", "2"]


def test_a_program_that_activates_by_itself_has_children_on_the_device_too() -> None:
    program = (
        "import torch, torchferry.sim, torchferry.runtime\n"
        f"torchferry.sim.activate({VENDORS[0]!r}, devices=2)\ntorchferry.runtime.activate({VENDORS[0]!r})\n"
        "import subprocess, sys\n"
        "child = 'import torch; print(torch.ones(1).cuda(1).device, torch.cuda.device_count())'\n"
        "print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert run.stdout.strip() == f"{get_vendor(VENDORS[0]).device_type}:1 2", run.stdout + run.stderr
