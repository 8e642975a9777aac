"""What stands in a profile's way, and what goes on beside it."""

from __future__ import annotations

from pathlib import Path

from .profiling import SIMULATED, TRAINING, profiled


def test_a_program_that_profiles_itself_is_left_alone(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
with torch.profiler.profile() as own:
    for _ in range(2):
        step()
print(len(own.key_averages()) > 9)
for _ in range(5):
    step()
print("not reached")
"""
    )
    run = profiled(code, tmp_path)
    assert run.ended.stdout == "" and not run.only.trace
    assert "profiles itself (<string>:23)" in run.only.problem
    kept = profiled(code, tmp_path, steps=(5, 6))  # its own is over by then
    assert kept.ended.stdout == "True\n" and list(kept.steps()) == ["ProfilerStep#5", "ProfilerStep#6"]


def test_a_profiler_of_the_program_that_begins_later_wins(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
step(); step()
with torch.autograd.profiler.profile() as own:
    forward()
print(any(event.key == "aten::addmm" for event in own.key_averages()))
"""
    )
    run = profiled(code, tmp_path, steps=(2, 5))
    assert run.ended.returncode == 0 and run.ended.stdout == "True\n"
    assert not run.only.trace and "profiles itself (<string>:24)" in run.only.problem


def test_forked_helpers_are_not_profiled(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
step()
helper = os.fork()
if not helper:
    torch.ones(3).cumsum(0)
    print(sys.getprofile(), flush=True)
    os._exit(0)
os.waitpid(helper, 0)
step()
"""
    )
    run = profiled(code, tmp_path, steps=(2, 2))
    assert run.ended.stdout == "None\n"
    assert run.only.last_step == 2 and not run.named("aten::cumsum")


def test_collected_garbage_and_autocast_are_noted(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
step()
with torch.autocast("cpu", dtype=torch.bfloat16):
    forward()
gc.collect()
step()
"""
    )
    run = profiled(code, tmp_path, steps=(2, 2))
    assert run.only.autocast is True
    assert run.named("torchferry::gc generation 2")
    plain = profiled(TRAINING + "gc.disable()\nfor _ in range(3):\n    step()\n", tmp_path, steps=(2, 2))
    assert plain.only.autocast is False and not plain.named("torchferry::gc")


def test_a_simulated_device_shows_its_memory_and_what_it_lacks(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
import warnings
warnings.simplefilter("ignore")
for _ in range(2):
    optimizer.zero_grad()
    torch.logcumsumexp(net(torch.randn(4, 8).to(device)), 0).softmax(1).sum().backward()
    optimizer.step()
"""
    )
    run = profiled(code, tmp_path, SIMULATED, steps=(2, 2))
    told = run.only
    assert (told.device, told.device_name, told.autocast) == ("npu", "Ascend910B2", False)
    assert told.fallbacks == {"aten::_logcumsumexp": 3}  # of the second step alone
    marks = run.named("torchferry::fallback aten::_logcumsumexp")
    assert len(marks) == 3
    on_device = [event["args"] for event in run.named("[memory]") if event["args"]["Device Type"] != 0]
    assert {each["Bytes"] > 0 for each in on_device} == {True, False}
    assert 0 < max(each["Total Allocated"] for each in on_device) <= told.memory_peak <= told.memory_limit
    # what a host kernel calls for its own part is no operator of the device
    (softmax,) = run.named("aten::_softmax_backward_data")
    assert list(run.inside(softmax)) == []


def test_compiled_models_and_optimizers_are_counted(tmp_path: Path) -> None:
    code = (
        TRAINING
        + """
net = torch.compile(net, backend="eager")
update = torch.compile(lambda: optimizer.step(), backend="eager")
for _ in range(5):
    optimizer.zero_grad()
    forward().backward()
    update()
print("not reached")
"""
    )
    run = profiled(code, tmp_path, steps=(3, 4))
    assert run.ended.returncode == 0 and run.ended.stdout == "", run.ended.stderr
    assert list(run.steps()) == ["ProfilerStep#3", "ProfilerStep#4"]
    assert run.only.autocast is None  # what is compiled does not show it


def test_the_time_of_a_step_without_the_profiler_is_told(tmp_path: Path) -> None:
    code = TRAINING + "for _ in range(9):\n    step()\n    time.sleep(0.005)\n"

    assert 0.005 < profiled(code, tmp_path, steps=(7, 8)).only.unprofiled_step < 5
    assert (
        profiled(code, tmp_path, steps=(2, 3)).only.unprofiled_step == 0
    )  # there was one, and it was the first
