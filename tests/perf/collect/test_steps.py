"""Which steps are profiled, and what of the program is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .profiling import TRAINING, profiled


def test_steps_are_those_of_the_user_and_the_program_ends_after_the_last(tmp_path: Path) -> None:
    code = TRAINING + "for number in range(1, 9):\n    step()\n    print(number)\n"
    run = profiled(code, tmp_path, steps=(3, 5))
    assert run.ended.returncode == 0, run.ended.stderr
    assert run.ended.stdout.split() == ["1", "2", "3", "4"]  # the fifth step ends it
    assert list(run.steps()) == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]
    assert (run.only.first_step, run.only.last_step, run.only.made) == (3, 5, 5)
    for mark in run.steps().values():
        names = list(run.inside(mark))
        assert names.count("Optimizer.step#SGD.step") == 1
        assert {"aten::addmm", "autograd::engine::evaluate_function: AddmmBackward0"} <= set(names)
    (addmm, *_) = run.named("aten::addmm")
    assert addmm["args"]["Input Dims"][1] == [4, 8] and addmm["args"]["Input type"][1] == "float"
    assert any(
        event["name"].endswith(": step") for event in run.events if event.get("cat") == "python_function"
    )


def test_a_step_begins_where_the_one_before_ends_so_the_wait_for_data_is_in_it(tmp_path: Path) -> None:
    loading = """
from torch.utils.data import DataLoader, TensorDataset
for x, in DataLoader(TensorDataset(torch.randn(24, 8)), batch_size=6):
    optimizer.zero_grad(); net(x.to(device)).sum().backward(); optimizer.step()
"""
    run = profiled(TRAINING + loading, tmp_path, steps=(1, 3))
    first, second, third = run.steps().values()
    assert float(second["ts"]) - (float(first["ts"]) + float(first["dur"])) < 1000  # microseconds
    for mark in (first, second, third):
        assert sum(name.startswith("enumerate(DataLoader)#") for name in run.inside(mark)) == 1
    assert run.only.batch == 6


def test_keep_running_goes_on_unprofiled(tmp_path: Path) -> None:
    code = TRAINING + "for number in range(5):\n    step()\nprint('end')\n"
    run = profiled(code, tmp_path, keep_running=True)
    assert run.ended.stdout == "end\n" and run.only.made == 3  # nothing is counted any more
    assert list(run.steps()) == ["ProfilerStep#2", "ProfilerStep#3"]


def test_a_program_that_ends_within_the_steps_leaves_whole_ones(tmp_path: Path) -> None:
    run = profiled(TRAINING + "step(); step(); forward()\n", tmp_path, steps=(2, 9))
    assert list(run.steps()) == ["ProfilerStep#2"]
    assert (run.only.first_step, run.only.last_step, run.only.made) == (2, 2, 2)
    assert run.named("torchferry::unfinished step 3")


@pytest.mark.parametrize("steps", [(4, 6), (3, 6)])  # not even warmed up, or warming up
def test_a_program_that_ends_before_them_says_how_many_there_were(
    steps: tuple[int, int], tmp_path: Path
) -> None:
    run = profiled(TRAINING + "step(); step()\nprint('end')\n", tmp_path, steps=steps)
    assert run.ended.stdout == "end\n" and run.ended.returncode == 0
    assert (run.only.made, run.only.trace) == (2, "")


def test_accumulated_gradients_are_one_step(tmp_path: Path) -> None:
    code = TRAINING + "for _ in range(4):\n    forward().backward(); forward().backward(); optimizer.step()\n"
    run = profiled(code, tmp_path)
    for mark in run.steps().values():
        assert list(run.inside(mark)).count("aten::cross_entropy_loss") == 2


def test_several_optimizers_make_one_step_and_seldom_ones_are_not_waited_for(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
other = torch.optim.Adam(nn.Linear(2, 2).parameters())
unused = torch.optim.Adam(nn.Linear(2, 2).parameters())
other.param_groups[0]["params"][0].grad = torch.ones(2, 2)
for _ in range(6):
    step(); other.step()
"""
    )
    run = profiled(code, tmp_path, steps=(3, 4))
    for mark in run.steps().values():
        names = [name for name in run.inside(mark) if name.startswith("Optimizer.step#")]
        assert names == ["Optimizer.step#SGD.step", "Optimizer.step#Adam.step"]


def test_another_optimizer_later_on_is_counted_on(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
for _ in range(3):
    step()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(4):
    step()
print("not reached")
"""
    )
    run = profiled(code, tmp_path, steps=(5, 6))
    assert run.ended.stdout == "" and len(run.named("Optimizer.step#Adam.step")) == 2


def test_a_step_that_a_scaler_leaves_out_is_one(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
for number in range(1, 6):
    optimizer.zero_grad()
    scaler.scale(forward() * (float("inf") if number == 2 else 1)).backward()
    scaler.step(optimizer); scaler.update()
"""
    )
    run = profiled(code, tmp_path, steps=(2, 3))
    assert list(run.steps()) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert len(run.named("Optimizer.step#SGD.step")) == 1
