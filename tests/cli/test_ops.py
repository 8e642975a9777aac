"""`ferry ops` as users call it: programs, models, what was captured before; reports, exit codes, bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from torchferry.readiness.capture_json import load
from torchferry.readiness.model import Capture, Phase

from .commands import command, environment, make, names, one_line, run

# A generator and a discriminator, each with an optimizer of its own; geqrf has no kernel on Ascend.
TRAIN = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
maker, judge = nn.Linear(4, 8).cuda(), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)).cuda()
of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.SGD(judge.parameters(), lr=0.1)


class Real(TensorDataset):
    def __getitem__(self, index):
        return super().__getitem__(index)[0].flip(0)


for step, real in enumerate(DataLoader(Real(torch.rand(12, 8)), batch_size=4)):
    real = real.to(device)
    made = maker(torch.rand(4, 4, device=device))
    of_judge.zero_grad()
    (judge(made.detach()).mean() - judge(real).mean()).backward()
    of_judge.step()
    torch.geqrf(real)
    of_maker.zero_grad()
    judge(made).mean().backward()
    of_maker.step()
    print("step", step, *sys.argv[1:])
"""


def ferry_ops(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run("ferry", "ops", *arguments, cwd=cwd, env=environment(OMP_NUM_THREADS="1"))


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A folder with the reports of one run, and how the command ended."""
    folder = make(tmp_path_factory.mktemp("ops"), train=TRAIN)
    before, after = ("-o", "ops.json"), ("-o", "ops.html", "-o", "unsupported_op.xlsx", "--check")
    result = ferry_ops(*before, "train.py", "--dummy", "--to", "ascend,cambricon", *after, cwd=folder)
    return folder, result


@pytest.fixture(scope="module")
def capture(captured: tuple[Path, object]) -> Capture:
    return load((captured[0] / "ops.json").read_text("utf-8"), "ops.json")


def test_the_verdict_comes_first(captured: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, result = captured
    assert result.returncode == 1, result.stderr  # --check, and an operator falls back
    first, second, *_ = result.stdout.splitlines()
    assert first.startswith("ascend ") and "aten::geqrf" in first and "fall" in first
    assert second.startswith("cambricon ")


def test_every_file_is_written(captured: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = captured
    assert names(folder) == ["ops.html", "ops.json", "train.py", "unsupported_op.xlsx"]
    assert (folder / "unsupported_op.xlsx").read_bytes()[:2] == b"PK"
    assert "aten::geqrf" in (folder / "ops.html").read_text("utf-8")


def test_the_program_ends_when_every_optimizer_has_stepped(
    capture: Capture, captured: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    assert capture.steps == 1
    assert (
        "step 0" not in captured[1].stdout + captured[1].stderr
    )  # the line after both steps was not reached
    optimizers = {use.operator for use in capture.uses if use.site.phase is Phase.OPTIMIZER}
    assert "aten::_foreach_addcdiv_.ScalarList" in optimizers  # Adam's, as on a device
    geqrf = [use for use in capture.uses if use.operator == "aten::geqrf"]
    assert [use.calls for use in geqrf] == [1]


def test_operators_know_their_lines_and_modules(capture: Capture) -> None:
    lines = TRAIN.splitlines()
    (geqrf,) = (use for use in capture.uses if use.operator == "aten::geqrf")
    name, _, number = geqrf.site.place.rpartition(":")
    assert name == "train.py" and "torch.geqrf" in lines[int(number) - 1]
    dropouts = {
        (use.site.phase, use.site.module)
        for use in capture.uses
        if use.operator.startswith("aten::native_dr")
    }
    assert dropouts == {(Phase.FORWARD, "1"), (Phase.BACKWARD, "1")}


def test_set_up_and_data_are_the_hosts(capture: Capture) -> None:
    (flip,) = (use for use in capture.uses if use.operator == "aten::flip")
    assert flip.site.phase is Phase.DATA
    assert not capture.runs_on_device(flip)
    drawn = [use for use in capture.uses if use.operator == "aten::uniform_"]  # the weights
    assert drawn and all(use.site.phase is Phase.SETUP for use in drawn)


def test_a_capture_is_judged_anew_without_a_run(captured: tuple[Path, object]) -> None:
    folder, _ = captured
    before = ferry_ops("--capture", "ops.json", "--to", "ascend", "--format", "json", cwd=folder)
    assert before.returncode == 0, before.stderr
    report: dict[str, Any] = json.loads(before.stdout)
    assert report["devices"][0]["operators"]["fallback"] == ["aten::geqrf"]
    zh = ferry_ops("--capture", "ops.json", "--to", "ascend@2.1", "--lang", "zh", cwd=folder)
    assert zh.stdout.startswith("ascend 2.1")


@pytest.mark.parametrize("last", [["--to", "nobody"], ["--to=nobody"]], ids=" ".join)
def test_the_vendor_may_come_last(last: list[str], tmp_path: Path) -> None:
    make(tmp_path, train="import torch\n")
    one_line(ferry_ops("train.py", "--lr", "0.1", *last, cwd=tmp_path), "unknown vendor 'nobody'")


def test_on_the_simulated_device_and_converted_already(tmp_path: Path) -> None:
    script = "import torch, torch_npu\nmodel = torch.nn.Linear(3, 2).npu()\nmodel(torch.ones(1, 3).npu()).sum().backward()\n"
    make(tmp_path, train=script)
    result = ferry_ops("--sim", "--converted", "--to", "ascend", "-o", "ops.json", "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    capture = load((tmp_path / "ops.json").read_text("utf-8"), "ops.json")
    assert capture.device == "npu"
    judged = {use.operator for use in capture.judged()}
    assert "aten::addmm" in judged
    assert "aten::uniform_" not in judged  # the weights were drawn on the CPU
    assert "no_step" in capture.notes


def test_a_program_that_fails_half_way_is_reported_as_far_as_it_came(tmp_path: Path) -> None:
    make(
        tmp_path, train="import torch\ntorch.nn.Linear(3, 2)(torch.ones(1, 3))\nraise ValueError('no data')\n"
    )
    result = ferry_ops("--to", "ascend", "train.py", cwd=tmp_path)
    assert result.returncode == 3
    assert "ValueError: no data" in result.stderr
    assert result.stdout.startswith("ascend ")
    assert "the program failed early" in result.stdout


def test_a_program_without_operators_is_refused(tmp_path: Path) -> None:
    make(tmp_path, train="print('hello')\n")
    result = ferry_ops("--to", "ascend", "train.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[0] == "hello"  # what the program prints is not mixed with the report
    assert "without calling a PyTorch operator" in result.stderr


def test_quiet_hides_what_the_program_prints(tmp_path: Path) -> None:
    make(
        tmp_path,
        train="import sys, torch\nprint('hello')\nprint('oh', file=sys.stderr)\ntorch.ones(3).sin()\n",
    )
    shown, hidden = (ferry_ops(*more, "--to", "ascend", "train.py", cwd=tmp_path) for more in ([], ["-q"]))
    assert (shown.stderr, hidden.stderr) == ("hello\noh\n", "oh\n")
    assert shown.stdout.splitlines()[0].startswith("ascend ")


def test_an_interrupted_run_writes_nothing(tmp_path: Path) -> None:
    make(tmp_path, train="import time, torch\ntorch.ones(1)\nopen('began', 'w').close()\ntime.sleep(60)\n")
    arguments = ("ops", "--to", "ascend", "-o", "ops.json", "train.py")
    child = subprocess.Popen(
        command("ferry", *arguments), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE
    )
    while not (tmp_path / "began").exists():
        assert child.poll() is None
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGINT)
    _, words = child.communicate(timeout=30)
    assert child.returncode == 130, words
    assert names(tmp_path) == ["began", "train.py"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train.py"], "which devices?"),
        (["train.py", "--to", "ascend", "more"], "more: unexpected"),
        (["--to", "ascend"], "which program?"),
        (["--to", "nobody", "train.py"], "nobody"),
        (["--to", "ascend@9.9", "train.py"], "2.13"),  # said before the run
        (["--to", "ascend", "nowhere.py"], "no such script: nowhere.py"),
        (["--to", "ascend", "--input", "2x3", "train.py"], "--input: only with --model"),
        (["--to", "ascend", "--model", "a:b", "train.py"], "only one of them at a time"),
        (["--to", "ascend", "--sim", "--device", "cuda", "train.py"], "--sim and --device"),
        (["--to", "intel", "--sim", "train.py"], "can't be simulated"),
        (["--to", "ascend", "-o", "ops.pdf", "train.py"], "ops.pdf: unknown kind of report"),
        (["--to", "ascend", "-o", "nowhere/ops.json", "train.py"], "folder that exists"),
        (["--to", "ascend", "--capture", "train.py"], "train.py"),
        (["--to", "ascend", "--trace", "train.py"], "train.py"),
        (["--to", "ascend", "--capture", "absent.json"], "absent.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, captured: tuple[Path, object]
) -> None:
    make(tmp_path, train="import torch\n")
    (tmp_path / "capture.json").write_bytes((captured[0] / "ops.json").read_bytes())
    one_line(ferry_ops(*arguments, cwd=tmp_path), words)
