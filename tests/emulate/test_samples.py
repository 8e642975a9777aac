"""PyTorch's own samples through the vendor's plugin: what the emulated CANN computes is what the CPU computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.test_conformance import A_FEW

BAR = "98"  # percent; docs/en/how-it-works/emulated.md names the others
ROOT = Path(__file__).parents[2]


def _compare(*options: str) -> None:
    """In a process of its own: PyTorch's samples import half of what is installed."""
    command = [sys.executable, "-m", "tools.conformance", "--vendor", "ascend", "--emulate", "--jobs", "1"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("emulation")
def test_a_few_operators_are_those_of_the_cpu() -> None:
    _compare("--ops", A_FEW, "--dtypes", "float32", "--samples", "4", "--equal", BAR)


@pytest.mark.long
@pytest.mark.usefixtures("emulation")
def test_all_operators_are_those_of_the_cpu() -> None:
    _compare("--dtypes", "float32", "--samples", "10", "--equal", BAR)
