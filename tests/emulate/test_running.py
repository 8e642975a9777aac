"""Programs on the vendor's own plugin: started in every way, and what they leave behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.commands import make, run
from tests.emulate.running import answer, run_python
from tests.launch.ways import ferry_run, python

pytestmark = pytest.mark.usefixtures("emulation")

TRAIN = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    inputs, wanted = torch.randn(5, 8).cuda(), torch.randint(0, 4, (5,)).cuda()
    loss = torch.nn.functional.cross_entropy(model(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(inputs.device, torch.npu.__name__)
"""
ENVIRONMENT = """\
import json, os, sys
before = dict(os.environ)
import torch
import torch_npu
print(json.dumps({
    "changed": sorted(name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)),
    "on the path": [entry for entry in sys.path if "plugins" in entry],
    "module": torch_npu.__file__,
    "device": str((torch.ones(2).npu() + 1).device),
    "devices": torch.npu.device_count(),
}))
"""
CHILD = """\
import torch_npu
import torch
import json, multiprocessing
def work(queue):
    import torch
    queue.put(str(torch.ones(1).npu().device))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(json.dumps([queue.get(), str(torch.ones(1).npu().device)]))
    process.join()
"""
BY_HAND = """\
import json
import torchferry.emulate
torchferry.emulate.activate("ascend", devices=3)
torchferry.emulate.activate("ascend")
import torch, torch_npu
now = torchferry.emulate.active()
print(json.dumps([torch.npu.device_count(), now.vendor.name, now.settings.devices]))
"""


def test_nothing_stays_behind_in_the_process() -> None:
    found = answer(ENVIRONMENT, devices=3)
    # besides what the toolkit's own programs are found by
    assert set(found["changed"]) <= {"PATH", "TORCHFERRY_PYTHON", "TORCHFERRY_TOOLKIT"}
    assert found["on the path"] == []
    assert (found["device"], found["devices"]) == ("npu:0", 3)


def test_the_plugin_may_be_imported_first_and_children_have_it_too(tmp_path: Path) -> None:
    make(tmp_path, program=CHILD)
    done = run_python(tmp_path / "program.py")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["npu:0", "npu:0"]


def test_where_pytorch_does_not_call_us_python_does() -> None:
    assert answer(ENVIRONMENT, TORCH_DEVICE_BACKEND_AUTOLOAD="0")["device"] == "npu:0"


def test_it_can_be_turned_on_by_hand() -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "TORCHFERRY_EMULATE"}
    done = python("-c", BY_HAND, **{name: inherited[name] for name in ("PATH",)})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [3, "ascend", 3]


def test_one_process_has_one_device() -> None:
    code = (
        "import torchferry.sim, torchferry.emulate\ntorchferry.sim.activate('ascend')\n"
        "try:\n    torchferry.emulate.activate('ascend')\nexcept Exception as error:\n    print(error)\n"
    )
    assert "already simulates ascend" in python("-c", code).stdout


def test_a_cuda_program_runs_unchanged_and_the_summary_says_on_what(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN)
    result = ferry_run("--to", "ascend", "--emulate", "-o", tmp_path / "s.json", tmp_path / "train.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("npu:0")
    assert "ascend's own plugin on an emulated npu: processes that used it: 1" in result.stderr
    assert "operator functions that the plugin called:" in result.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert (summary["means"], summary["exit_code"]) == ("emulated", 0)
    assert summary["devices"][0]["peak_allocated"] > 0


def test_the_vendors_own_migration(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN)
    result = ferry_run("-q", "--to", "ascend", "--emulate", "--native", tmp_path / "train.py")
    assert (result.returncode, result.stdout[:5]) == (0, "npu:0"), result.stderr


def test_a_user_who_does_not_choose_gets_it_and_is_told(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN)
    result = ferry_run("--to", "ascend", tmp_path / "train.py", TORCHFERRY_EMULATE="")
    assert "torch_npu is set up: running on it with an emulated CANN" in result.stderr.splitlines()[0]
    assert "own plugin on an emulated npu" in result.stderr


def test_the_proof_holds_on_the_vendors_plugin(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN)
    words = (
        "prove",
        "--to",
        "ascend",
        "--emulate",
        "--steps",
        "2",
        "-o",
        tmp_path / "proof",
        tmp_path / "train.py",
    )
    result = run("ferry", *words)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "with the vendor's own plugin on an emulated npu" in " ".join(result.stdout.split())
    assert json.loads((tmp_path / "proof/proof.json").read_text())["request"]["emulated"]


def test_the_doctor_computes_on_it() -> None:
    result = run("ferry", "doctor", "--to", "ascend", "--emulate", "--try", "--verbose", "--check")
    assert result.returncode == 0, result.stdout
    assert "computed on 2 devices" in result.stdout


def test_what_is_set_up_can_be_asked_for() -> None:
    result = run("ferry", "emulate", "info")
    assert result.returncode == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["plugin", "libraries", "device"]
