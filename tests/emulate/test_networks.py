"""Networks trained on the vendor's own plugin end with the CPU's bits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.emulate.running import answer, run_python
from tests.sim.models.names import GUIDE_NAMES
from tests.sim.models.process import ROOT

pytestmark = pytest.mark.usefixtures("emulation")

NETWORKS = Path(__file__).with_name("networks.py")
MODELS = "import runpy; runpy.run_module('tests.sim.models.runner', run_name='__main__')"
# What the plugin does in its own way, and how far its losses are then from the CPU's.
OTHERWISE = {
    "GRU": 0.02,  # it leaves the padding in packed sequences, its GRU for them expects none
    "LPRNet": 1e-4,  # gradients that the CPU keeps in another order in memory are summed in another order
    "RAFT": 1e-4,  # the same
    "VIT-base": 0.02,  # dropout of a transposed tensor: the CPU draws in the order of the memory
}


def test_small_networks_are_bitwise_equal() -> None:
    differences = answer(NETWORKS.read_text("utf-8"))
    assert len(differences) == 6
    assert not any(differences.values()), differences


@pytest.mark.long
def test_the_models_of_the_guide_train_two_steps() -> None:
    done = run_python(MODELS, "--device", "npu", "--threads", "1", *GUIDE_NAMES, folder=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, Any]] = {
        one["name"]: one for one in map(json.loads, filter(_is_answer, done.stdout.splitlines()))
    }
    assert {name: one["error"] for name, one in found.items() if "error" in one} == {}
    assert list(found) == list(GUIDE_NAMES)
    assert {name for name, one in found.items() if not one["equal"]} <= OTHERWISE.keys()
    assert not any(one["unchanged"] or one["without_gradient"] for one in found.values())
    for name, most in OTHERWISE.items():
        losses = zip(found[name]["losses"], found[name]["device_losses"], strict=True)
        assert all(math.isclose(*pair, rel_tol=most) for pair in losses), name


def _is_answer(line: str) -> bool:
    return line.startswith("{")
