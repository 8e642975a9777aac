"""However a program ends, and wherever in it operators are called, what it called is captured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.forking import run_forked
from torchferry.readiness.capture.settings import SUFFIX, CaptureSettings
from torchferry.readiness.capture_json import load
from torchferry.readiness.model import Capture, Phase

MODEL = """\
import os, signal, threading, time
import torch

model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()


"""


def captures(program: str, folder: Path, steps: int | None = 1) -> tuple[list[Capture], str]:
    """What each process of it called, and what it printed."""
    settings = CaptureSettings(str(folder), "train.py", steps)
    result = run_forked(MODEL + program, {**os.environ, **settings.environment()}, folder)
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return [load(file.read_text("utf-8"), file.name) for file in files], result.stdout + result.stderr


def phases(capture: Capture) -> set[Phase]:
    return {use.site.phase for use in capture.uses}


@pytest.mark.parametrize(
    "end",
    ["pass", "raise SystemExit(0)", "os._exit(0)", "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"],
)
def test_nothing_is_lost_at_the_end(end: str, tmp_path: Path) -> None:
    (capture,), _ = captures(f"step()\n{end}\n", tmp_path, steps=None)
    assert (capture.steps, phases(capture)) == (1, set(Phase) - {Phase.DATA})


def test_a_program_that_catches_everything_ends_all_the_same(tmp_path: Path) -> None:
    loop = "for number in range(20):\n    try:\n        step()\n    except BaseException:\n        print('caught')\n"
    (capture,), printed = captures(f"{loop}print('trained to the end')\n", tmp_path)
    assert capture.steps == 1
    assert "caught" in printed and "trained to the end" not in printed


def test_a_thread_that_trains(tmp_path: Path) -> None:
    (capture,), _ = captures(
        "thread = threading.Thread(target=step)\nthread.start()\nthread.join()\n", tmp_path
    )
    assert {Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER} <= phases(capture)
    lines = {use.site.place for use in capture.uses if use.site.phase is Phase.BACKWARD and use.site.place}
    assert lines == {"<string>:10"}  # where the forward pass is, also for a thread that counts nodes anew


def test_a_forked_process_that_trains(tmp_path: Path) -> None:
    fork = "import multiprocessing\nchild = multiprocessing.get_context('fork').Process(target=step)\n"
    found, printed = captures(f"{fork}child.start()\nchild.join()\n", tmp_path)
    assert "Error" not in printed  # autograd must not have started its threads before
    assert sorted(capture.steps for capture in found) == [0, 1]
    (trained,) = (capture for capture in found if capture.steps)
    assert "aten::uniform_" not in {use.operator for use in trained.uses}  # the parent drew the weights


def test_workers_that_load_data_leave_no_capture(tmp_path: Path) -> None:
    load_data = """\
class Turned(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.ones(3).flip(0)


for batch in torch.utils.data.DataLoader(Turned(), num_workers=1, multiprocessing_context="fork"):
    model(batch)
"""
    (capture,), printed = captures(load_data, tmp_path)
    operators = {use.operator for use in capture.uses}
    assert "aten::addmm" in operators and "aten::flip" not in operators, printed


def test_code_that_is_traced(tmp_path: Path) -> None:
    trace = "traced = torch.jit.trace(lambda x: torch.relu(x) * 2, torch.ones(2))\ntraced(torch.ones(3))\nstep()\n"
    (capture,), printed = captures(trace, tmp_path)
    assert "Error" not in printed
    assert [use.calls for use in capture.uses if use.operator == "aten::relu"] == [
        1
    ]  # when it ran, not when traced


def test_a_program_that_goes_elsewhere_keeps_its_name(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{MODEL}os.chdir('/')\nstep()\n", "utf-8")
    settings = CaptureSettings(str(tmp_path), "train.py")
    run_forked(script, {**os.environ, **settings.environment()}, tmp_path)
    (file,) = tmp_path.glob(f"*{SUFFIX}")
    places = {use.site.place.rpartition(":")[0] for use in load(file.read_text("utf-8"), "").uses}
    assert places <= {"train.py", ""}


def test_what_is_computed_with_shapes_alone_is_no_work_for_a_device(tmp_path: Path) -> None:
    shapes = """\
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    torch.ones(2).cosh()
torch.ones(2, device="meta").sinh()
step()
"""
    (capture,), _ = captures(shapes, tmp_path)
    assert not {"aten::cosh", "aten::sinh"} & {use.operator for use in capture.uses}
