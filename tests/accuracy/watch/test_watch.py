"""What is kept of a long training equals what is computed by hand, and is there whatever happens to the program."""

from __future__ import annotations

import math
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.forking import run_forked
from torchferry.accuracy.file.reader import open_record, open_records
from torchferry.accuracy.model import Call, Kept, Statistics
from torchferry.accuracy.record import launching
from torchferry.accuracy.record.settings import WatchSettings
from torchferry.cli.main import main

PROGRAM = """\
import os, signal, sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, {steps} + 1):
    optimizer.zero_grad()
    {before}
    loss = model(torch.randn(16, 4)).square().mean()
    loss.backward()
    optimizer.step()
    {after}
"""


def watch(
    folder: Path, every: int = 2, name: str = "run.h5", **fields: Any
) -> subprocess.CompletedProcess[str]:
    program = fields.pop("program", PROGRAM).format(**{"steps": 5, "before": "", "after": "", **fields})
    settings = WatchSettings(
        str(folder / name), program="train.py", kept=Kept.STATISTICS, steps=None, device="cpu",
        every=every,
    )  # fmt: skip
    return run_forked(program, {**os.environ, **settings.environment()}, folder)


def calls_in(path: Path) -> list[Call]:
    with open_record(path) as record:
        assert record.header.kept is Kept.STATISTICS
        return list(record.calls)


def figures(calls: list[Call], operator: str, step: int, module: str = "", name: str = "") -> Statistics:
    """Those of the only tensor that fits."""
    found = [
        tensor.statistics
        for call in calls
        if (call.operator, call.step, call.module) == (operator, step, module)
        for tensor in call.outputs
        if tensor.name.endswith(f"/{name}" if name else "")
    ]
    assert len(found) == 1 and found[0] is not None, (operator, step, module, name)
    return found[0]


def test_values_are_those_computed_by_hand(tmp_path: Path) -> None:
    assert watch(tmp_path).returncode == 0
    calls = calls_in(tmp_path / "run.h5")
    assert sorted({call.step for call in calls}) == [1, 2, 4]
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 6):
        optimizer.zero_grad()
        hidden = model[0](torch.randn(16, 4))
        normal = model[1](hidden)
        normal.retain_grad()
        loss = model[3](model[2](normal)).square().mean()
        loss.backward()
        before = model[0].weight.detach().clone()
        optimizer.step()
        if step not in (1, 2, 4):
            continue
        _equal(figures(calls, "loss", step), loss)
        _equal(figures(calls, "module", step, "0"), hidden)
        _equal(figures(calls, "module", step, "1"), normal)
        assert normal.grad is not None and model[0].weight.grad is not None
        _equal(figures(calls, "output_gradient", step, "1"), normal.grad)
        _equal(figures(calls, "gradient", step, "0", "weight"), model[0].weight.grad)
        _equal(figures(calls, "parameter", step, "0", "weight"), model[0].weight)
        _equal(figures(calls, "update", step, "0", "weight"), model[0].weight - before)
        _equal(figures(calls, "buffer", step, "1", "running_var"), model[1].running_var)
        _equal(figures(calls, "buffer", step, "1", "running_mean"), model[1].running_mean)
        norm = torch.nn.utils.get_total_norm([each.grad for each in model.parameters()])
        assert figures(calls, "gradient_norm", step).norm == pytest.approx(norm.item(), rel=1e-5)
        assert figures(calls, "learning_rate", step, "group0").mean == 0.1


def _equal(found: Statistics, tensor: torch.Tensor) -> None:
    values = tensor.detach().double()
    expected = (values.mean(), values.square().mean().sqrt(), values.min(), values.max())
    given = (found.mean, found.rms, found.minimum, found.maximum)
    assert given == pytest.approx([each.item() for each in expected], rel=1e-4, abs=1e-7)
    assert found.count == tensor.numel() and found.nans == found.infinities == 0


def test_the_program_runs_as_without(tmp_path: Path) -> None:
    after = "print(step, float(loss))"
    plain = run_forked(PROGRAM.format(steps=5, before="", after=after), dict(os.environ), tmp_path)
    assert watch(tmp_path, after=after).stdout == plain.stdout != ""


def test_what_is_not_finite_is_counted(tmp_path: Path) -> None:
    watch(tmp_path, before="model[0].weight.data[0, 0] = float('nan')", steps=1)
    calls = calls_in(tmp_path / "run.h5")
    assert figures(calls, "module", 1, "0").nans == 16
    assert figures(calls, "loss", 1).nans == 1


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "raise ValueError", "os._exit(3)"])
def test_a_run_that_is_cut_off_keeps_what_it_had(end: str, tmp_path: Path) -> None:
    ended = watch(tmp_path, steps=9, before=f"if step == 7: {end}")
    assert ended.returncode != 0
    calls = calls_in(tmp_path / "run.h5")
    assert sorted({call.step for call in calls}) == [1, 2, 4, 6]
    assert figures(calls, "parameter", 6, "3", "bias").count == 2


def test_a_step_that_has_not_ended_is_not_kept(tmp_path: Path) -> None:
    watch(tmp_path, before="if step == 4: model(torch.randn(16, 4)); os._exit(0)")
    assert {call.step for call in calls_in(tmp_path / "run.h5")} == {1, 2}


def test_two_runs_that_part_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = "if step == 4: model[3].weight.data.mul_(1.25)"
    watch(tmp_path, 1, "golden.h5")
    watch(tmp_path, 1, "mine.h5", before=change)
    watch(tmp_path, 1, "same.h5")
    names = [str(tmp_path / name) for name in ("mine.h5", "golden.h5", "same.h5")]
    assert main(["compare", "--lang", "en", "--check", *names[:2]]) == 1
    verdict = capsys.readouterr().out.splitlines()[0]
    assert "step 4" in verdict and "Sequential: 3" in verdict
    assert main(["compare", "--lang", "en", "--check", *names[1:]]) == 0


SCALED = """\
import torch
from torch import nn
torch.manual_seed(0)
model, scaler = nn.Linear(4, 4), torch.amp.GradScaler("cpu", init_scale=1024.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range({steps}):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).square().mean()
    print(float(loss))
    scaler.scale({factor} * loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_a_scaled_loss_is_kept_without_its_scale(tmp_path: Path) -> None:
    ended = watch(tmp_path, 1, program=SCALED, steps=1, factor="1.0")
    calls = calls_in(tmp_path / "run.h5")
    assert figures(calls, "loss", 1).mean == pytest.approx(float(ended.stdout))
    assert figures(calls, "scale", 1).mean == 1024.0
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    y = model(torch.ones(2, 4))
    y.retain_grad()
    y.square().mean().backward()
    assert y.grad is not None and model.weight.grad is not None
    _equal(figures(calls, "gradient", 1, "", "weight"), model.weight.grad)
    (output,) = [call for call in calls if call.operator == "output_gradient"]
    assert output.outputs[0].statistics is not None
    _equal(output.outputs[0].statistics, y.grad)


def test_a_step_that_the_scaler_skips(tmp_path: Path) -> None:
    watch(tmp_path, 1, program=SCALED, steps=1, factor="float('inf')")
    calls = calls_in(tmp_path / "run.h5")
    gradient = figures(calls, "gradient", 1, "", "weight")
    assert gradient.infinities + gradient.nans > 0
    (step,) = [call for call in calls if call.operator == "step"]
    assert dict(step.arguments)["skipped"] is True
    assert not [call for call in calls if call.operator == "update"]


ANSWERS = """\
import torch
from dataclasses import dataclass
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass
class Answer:
    hidden: torch.Tensor
    count: int = 3


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return {{"one": x * self.weight, "more": (Answer(x + 1), [x.long()])}}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.again = Inner(), nn.Linear(4, 4)

    def forward(self, x):
        x = self.inner(x)["one"]
        for _ in range(40):
            x = self.again(x)
        return checkpoint(self.again, x, use_reentrant=False)


model = Net()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
"""


def test_answers_of_all_kinds_and_modules_that_are_called_often(tmp_path: Path) -> None:
    ended = watch(tmp_path, program=ANSWERS)
    assert ended.returncode == 0, ended
    calls = calls_in(tmp_path / "run.h5")
    (inner,) = [call for call in calls if call.operator == "module" and call.module == "inner"]
    assert [tensor.name for tensor in inner.outputs] == ["output/output_0", "output/output_1"]
    assert len([call for call in calls if call.operator == "module" and call.module == "again"]) == 16
    parameters = {(call.module, call.outputs[0].name) for call in calls if call.operator == "parameter"}
    assert ("inner", "output/weight") in parameters and ("inner.unused", "output/bias") in parameters


TWO = """\
import os, torch
import torch.distributed as dist
import torch.multiprocessing as processes


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{{folder}}/meet", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 4), 1.0 + rank)).sum().backward()
        optimizer.step()


processes.start_processes(train, (os.getcwd(),), nprocs=2, start_method="fork")
"""


def test_each_process_has_a_file(tmp_path: Path) -> None:
    ended = watch(tmp_path, 1, program=TWO)
    assert ended.returncode == 0, ended
    records = open_records(tmp_path / "run.h5")
    assert [record.header.rank for record in records] == [0, 1]
    first, second = (list(record.calls) for record in records)
    gradients = [figures(calls, "gradient", 2, "0", "weight") for calls in (first, second)]
    assert gradients[0].checksum == gradients[1].checksum  # they were averaged
    outputs = [figures(calls, "module", 1, "0") for calls in (first, second)]
    assert not math.isclose(outputs[0].rms, outputs[1].rms)


def test_a_block_of_code(tmp_path: Path) -> None:
    program = f"""\
import torch
from torchferry.accuracy.watch import watching
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(steps):
    for _ in range(steps):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


with watching({str(tmp_path / "block.h5")!r}, every=3) as watcher:
    train(7)
train(3)
print(watcher.watched)
"""
    assert run_forked(program, dict(os.environ), tmp_path).stdout == "3\n"
    assert {call.step for call in calls_in(tmp_path / "block.h5")} == {1, 3, 6}


@pytest.mark.long
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(steps=5, before="", after="") + "raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    assert main(["watch", "-q", "--every", "4", "-o", "run.h5", "--to", "ascend", "--sim", "train.py"]) == 7
    assert {call.step for call in calls_in(tmp_path / "run.h5")} == {1, 4}


UNUSED_RESULT = PROGRAM.replace("model = ", """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2
    @staticmethod
    def backward(ctx, first, second):
        return first
class Split(nn.Module):
    def forward(self, x):
        return Twice.apply(x)
class First(nn.Sequential):
    def forward(self, x):
        return self[0](x)[0]
model = """).replace("nn.ReLU()", "First(Split())")  # fmt: skip


def test_a_result_that_gets_no_gradient_is_left_out(tmp_path: Path) -> None:
    run = watch(tmp_path, program=UNUSED_RESULT, steps=1)
    assert run.returncode == 0, run.stderr
    gradients = [call for call in calls_in(tmp_path / "run.h5") if call.operator == "output_gradient"]
    of_split = [[tensor.name for tensor in call.outputs] for call in gradients if call.module == "2.0"]
    assert of_split == [["output/output_0"]]


def test_what_fails_while_watching_does_not_end_the_program(tmp_path: Path) -> None:
    broken = PROGRAM.replace(
        "model = ",
        "class Odd(torch.Tensor):\n"
        "    is_floating_point = property(lambda self: 1 / 0)\n"
        "class Odds(nn.Module):\n"
        "    def forward(self, x): return x.as_subclass(Odd)\n"
        "model = ",
    )
    run = watch(tmp_path, program=broken.replace("nn.ReLU()", "Odds()"), after="print(step)")
    assert (run.returncode, run.stdout.split()) == (0, ["1", "2", "3", "4", "5"]), run.stderr
    assert calls_in(tmp_path / "run.h5") == []


SHARDED = PROGRAM.replace(
    "optimizer = ",
    "import torch.distributed as distributed\n"
    "from torch.distributed.fsdp import fully_shard\n"
    "store = distributed.HashStore()\n"
    "distributed.init_process_group('gloo', store=store, rank=0, world_size=1)\n"
    "mesh = distributed.device_mesh.init_device_mesh('cpu', (1,))\n"
    "fully_shard(model, mesh=mesh)\n"
    "optimizer = ",
)


def test_of_sharded_parameters_the_part_that_is_here(tmp_path: Path) -> None:
    watch(tmp_path, name="whole.h5")
    sharded = watch(tmp_path, name="sharded.h5", program=SHARDED)
    assert sharded.returncode == 0, sharded.stderr

    def known(name: str) -> set[tuple[str, int, str, str, Statistics | None]]:
        return {
            (call.operator, call.step, call.module, tensor.name, tensor.statistics)
            for call in calls_in(tmp_path / name)
            for tensor in call.outputs
            if call.operator in ("gradient", "parameter", "update")
        }

    assert known("sharded.h5") == known("whole.h5") and len(known("whole.h5")) == 3 * 3 * 6


@pytest.mark.parametrize("command", ["watch", "record", "overflow", "profile"])
def test_without_torch_it_is_torch_that_is_missing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    monkeypatch.setattr(launching, "find_spec", lambda _: None)
    output = [] if command == "overflow" else ["-o", str(tmp_path / "out")]
    assert main([command, *output, str(script)]) == 2
    err = capfd.readouterr().err
    assert "PyTorch is not installed" in err and "cpu_autocast" not in err


GROUPS = PROGRAM.replace(
    "torch.optim.SGD(model.parameters(), lr=0.1)",
    "torch.optim.SGD([{{'params': model[0].parameters()}}, {{'params': model[3].parameters(), 'lr': 0.2}}], lr=0.1)",
)


def test_each_group_of_an_optimizer_has_its_norm(tmp_path: Path) -> None:
    watch(tmp_path, 1, program=GROUPS, steps=1)
    calls = calls_in(tmp_path / "run.h5")
    for group, module in (("group0", "0"), ("group1", "3")):
        parts = [figures(calls, "gradient", 1, module, name).norm for name in ("weight", "bias")]
        assert figures(calls, "group_gradient_norm", 1, group).norm == pytest.approx(math.hypot(*parts))
    watch(tmp_path, 1, "one.h5", steps=1)
    assert not any(call.operator == "group_gradient_norm" for call in calls_in(tmp_path / "one.h5"))


def test_a_step_says_when_it_ended(tmp_path: Path) -> None:
    began = time.time()
    watch(tmp_path, 1)
    told = [dict(call.arguments) for call in calls_in(tmp_path / "run.h5") if call.operator == "step"]
    moments = [each["time"] for each in told]
    assert len(moments) == 5 and moments == sorted(moments)  # type: ignore[type-var]
    assert began - 1 <= float(moments[0]) <= float(moments[-1]) <= time.time() + 1  # type: ignore[arg-type]
