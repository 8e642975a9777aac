"""What is to be typed after a run on the vendor's plugin says --emulate; `ferry zoo check --run` can run there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.commands import make, run
from torchferry.accuracy.file.reader import open_record
from torchferry.proof.model import (
    OperatorCall,
    OperatorDifference,
    OperatorJudgement,
    ProofRequest,
    ProofVerdict,
    VendorResult,
)
from torchferry.proof.report.text import next_commands
from torchferry.report.checks import Status
from torchferry.vendors.registry import get_vendor
from torchferry.vendors.zoo import find_zoo
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.review import run_short_training

TRAIN = """\
import torch
model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(2):
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
"""
ON_THE_PLUGIN = (
    '"$PYTHON" -c "import torch, torch_npu; assert torch_npu.__version__; torch.ones(1).npu() + 1"\n'
)
DELIVERY = Path("PyTorch/contrib/Classification/Net")


@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize("command", [("record",), ("watch", "--every", "1")], ids=lambda words: words[0])
def test_a_record_says_how_to_repeat_its_run(command: tuple[str, ...], tmp_path: Path) -> None:
    make(tmp_path, program=TRAIN)
    name, *options = command
    words = (name, *options, "--to", "ascend", "--emulate", "--seed", "0", "-o", tmp_path / "npu.h5")
    done = run("ferry", *words, tmp_path / "program.py")
    assert done.returncode == 0, done.stderr
    header = open_record(tmp_path / "npu.h5").header
    assert (header.vendor, header.simulated) == ("ascend", False)
    assert {"--emulate", "--seed"} <= set(shlex.split(header.options))


@pytest.mark.parametrize("emulated", [True, False])
def test_after_a_proof_the_run_is_recorded_where_it_was(emulated: bool) -> None:
    call = OperatorCall(1, "aten::mm", "forward", "", "train.py:1", ())
    result = VendorResult(
        "ascend",
        "npu",
        ProofVerdict.PARTED,
        None,
        1,
        operator=OperatorDifference(call, call, 0, 1.0, 1.0),
        judgement=OperatorJudgement("fault", "", None, None, None, "", 2),
    )
    request = ProofRequest(
        ("train.py",), "", ("ascend",), None, 0, 0, False, False, None, None, emulated=emulated
    )
    _, migrated, _ = next_commands(request, result)
    assert migrated.startswith(f"ferry record --to ascend {'--emulate' if emulated else '--sim'} --seed 0")


@pytest.mark.usefixtures("emulation")
def test_a_delivery_trains_on_the_plugin(tmp_path: Path) -> None:
    _, table = find_zoo(None, [])
    root = tmp_path / DELIVERY
    (root / table.test).parent.mkdir(parents=True)
    (root / table.test).write_text(ON_THE_PLUGIN)
    item = run_short_training(Delivery(root, get_vendor("ascend"), table), (), emulate=True)
    assert (item.status, item.found.en) == (
        Status.FINE,
        "ran to completion on the vendor's own plugin, emulated",
    )


def test_a_vendor_that_cannot_be_emulated_is_named(tmp_path: Path) -> None:
    vendor, table = find_zoo(None, [])
    root = tmp_path / DELIVERY
    (root / table.test).parent.mkdir(parents=True)
    (root / table.test).write_text("exit 0\n")
    item = run_short_training(Delivery(root, vendor, table), (), emulate=True)
    assert item.status is Status.DOUBT
    assert "no emulation of this vendor's toolkit" in item.found.en


def test_emulate_is_for_the_short_training_alone(tmp_path: Path) -> None:
    done = run("ferry", "zoo", "check", tmp_path, "--emulate")
    assert done.returncode == 2
    assert "add --run" in done.stderr
