"""What real runs suggest to type is typed, word for word, in folders and with names that need quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import TRAIN
from tests.journey.suggestions import Newcomer, suggested
from tests.test_docs import ROOT

TRAINING = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.0), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    torch.manual_seed(step)
    loss = model(torch.randn(4, 8).cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save({"state_dict": {"module." + name: each for name, each in model.state_dict().items()}}, "it's 权重.pth")
"""


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


@pytest.mark.parametrize("name", ["my project", "it's", "$HOME & co", "数据"])
def test_from_the_scan_to_the_conversion(name: str, newcomer: Newcomer) -> None:
    folder = newcomer.folder / name
    folder.mkdir()
    (folder / "train it.py").write_text(f"{TRAIN}loss.backward()\n")
    from torchferry.report.commands import ferry_command

    (command,) = suggested(newcomer.type(ferry_command("scan", name, "--to", "ascend")))
    (command,) = suggested(newcomer.type(command))
    assert command.startswith("ferry prove --to ascend --before ")
    assert (newcomer.folder / f"{name}_npu" / "train it.py").is_file()
    (command,) = suggested(newcomer.type(ferry_command("scan", name, "--to", "ascend")))
    assert command.endswith(f"{ferry_command('-o', f'{name}_npu1').removeprefix('ferry ')}")


@pytest.mark.long
def test_commands_that_run_programs(newcomer: Newcomer) -> None:
    """Each suggestion is followed until nothing new is suggested."""
    (newcomer.folder / "it's a test.py").write_text(TRAINING)
    program = '''"it's a test.py"'''
    waiting = [
        f"ferry record --steps 1 -o 'gpu 1.h5' {program}",
        f"ferry record --to ascend --sim --steps 1 -o 'npu 1.h5' {program}",
        f"ferry profile --to ascend --sim --steps 2:3 -o 'my profile' {program}",
        "ferry replay --device cpu 'gpu 1.h5' -o 'again 1.h5'",
        f"ferry run --to ascend --sim {program}",
        '''ferry checkpoint info "it's 权重.pth"''',
    ]
    done: set[str] = set()
    while waiting:
        command = waiting.pop(0)
        done.add(command)
        waiting += [each for each in suggested(newcomer.follow(command)) if each not in done | {*waiting}]
    kinds = {" ".join(command.split()[1:2]) for command in done}
    assert {"analyze", "compare"} <= kinds
    assert any(command.startswith("ferry checkpoint fix") for command in done)
    assert (newcomer.folder / "clean.pth").is_file()


@pytest.mark.long
def test_an_overflow_leads_to_a_test_of_the_operator(newcomer: Newcomer) -> None:
    program = TRAINING.replace("loss = model(", "loss = model(1e38 * 1e38 * ")
    (newcomer.folder / "over flow.py").write_text(program)
    found = newcomer.type("ferry overflow --to ascend --sim -o 'first one.h5' 'over flow.py'", 1)
    commands = suggested(found)
    assert commands
    for command in commands:
        newcomer.follow(command)


@pytest.mark.long
def test_a_delivery_leads_to_its_check(newcomer: Newcomer) -> None:
    folder = newcomer.folder / "my project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAINING)
    made = newcomer.type(
        "ferry zoo new 'my models/PyTorch/contrib/Classification/Net' --from 'my project' --to tecorigin"
    )
    (command,) = suggested(made)
    newcomer.type(command, 1)  # it lacks evidence, and says so


@pytest.mark.long
def test_a_wrong_kernel_leads_to_everything_about_the_call(newcomer: Newcomer) -> None:
    program = (ROOT / "examples/accuracy/train.py").read_text("utf-8")
    (newcomer.folder / "train me.py").write_text(program)
    newcomer.type("ferry record -o gpu.h5 'train me.py'")
    newcomer.type("ferry record --to ascend --sim -o npu.h5 'train me.py' --wrong-kernel")
    commands = suggested(newcomer.type("ferry compare npu.h5 gpu.h5", 1))
    assert {command.split()[1] for command in commands} >= {"case", "record"}
    for command in commands:
        newcomer.follow(command)
