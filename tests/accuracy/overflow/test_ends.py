"""However a program ends, what was found is reported."""

from __future__ import annotations

from pathlib import Path

from tests.accuracy.overflow.checking import check, training
from torchferry.accuracy.overflow.model import End

QUIET = "model(torch.ones(3, 4)).mean().backward()\n"
LOUD = "(model(torch.ones(3, 4)) - 9).log().sum().backward()\n"


def test_a_program_that_catches_everything_is_ended_all_the_same(tmp_path: Path) -> None:
    loop = f"try:\n    {LOUD}\nexcept BaseException:\n    print('caught')\n"
    run = check(training(loop, steps=50), tmp_path)
    assert run.first.call.operator == "aten::log" and run.ended.returncode == 1
    assert "caught" in run.ended.stdout and "trained to the end" not in run.ended.stdout


def test_a_crash_after_the_overflow(tmp_path: Path) -> None:
    run = check(training(f"{LOUD}raise ValueError('by itself')"), tmp_path, keep_going=True)
    assert run.first.call.operator == "aten::log" and run.findings.end is End.PROGRAM
    assert "ValueError: by itself" in run.ended.stderr and run.ended.returncode == 1


def test_a_crash_without_one(tmp_path: Path) -> None:
    run = check(training(f"{QUIET}if number == 1: raise ValueError"), tmp_path)
    assert run.findings.first is None and (run.findings.end, run.findings.steps) == (End.PROGRAM, 1)


def test_a_killed_process(tmp_path: Path) -> None:
    run = check(
        training(f"{QUIET}if number == 2: os.kill(os.getpid(), signal.SIGKILL)"), tmp_path, steps=None
    )
    assert (run.findings.end, run.findings.steps) == (End.UNFINISHED, 2)


def test_ctrl_c(tmp_path: Path) -> None:
    run = check(training(f"{QUIET}if number == 1: os.kill(os.getpid(), signal.SIGINT)"), tmp_path, steps=None)
    assert (run.findings.end, run.findings.steps) == (End.PROGRAM, 1)


def test_threads_and_checkpoints(tmp_path: Path) -> None:
    program = training(
        "y = torch.utils.checkpoint.checkpoint(model, torch.ones(3, 4), use_reentrant=False)\n"
        "(y - y.detach()).sqrt().sum().backward()",
        before="import torch.utils.checkpoint",
    )
    assert check(program, tmp_path).first.call.node == "SqrtBackward0"


def test_a_block_of_code(tmp_path: Path) -> None:
    file = tmp_path / "block.h5"
    program = f"""\
import torch
from pathlib import Path
from torchferry.accuracy.overflow import check_block
with check_block(Path({str(file)!r})):
    torch.ones(3).log()
with check_block(Path({str(tmp_path / "none.h5")!r})):
    torch.ones(3).log()
x = torch.zeros(3).log()
with check_block(Path({str(file)!r})) as block:
    y = torch.ones(3, requires_grad=True) * -2
    z = y.log().sqrt()
print([event.call.operator for event in block.events])
"""
    from tests.forking import run_forked

    ended = run_forked(program, {}, tmp_path)
    assert ended.stdout == "['aten::log']\n", ended
    assert "torchferry: overflow: aten::log produces NaN (step 1, forward pass, <string>:11)" in ended.stderr
    assert file.exists() and not (tmp_path / "none.h5").exists()
