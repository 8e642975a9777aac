"""Which calls of a program are recorded: from which step on, for how long, of which modules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from torchferry.accuracy.model import Kept

from .recording import TRAINING, recorded

THREE_STEPS = f"{TRAINING}for number in range(3):\n    step()\nprint('trained to the end')\n"


def steps_of(run: object) -> Counter[int]:
    with run.record as record:  # type: ignore[attr-defined]
        return Counter(call.step for call in record.calls)


def test_one_step_from_the_first_forward_to_the_optimizer(tmp_path: Path) -> None:
    run = recorded(THREE_STEPS, tmp_path)
    operators = run.operators()
    assert operators[0] == "convolution"  # neither the weights being drawn nor the batch
    assert operators[-1].startswith(("_foreach_add", "_foreach_addcdiv", "addcdiv_"))
    assert (run.ended.returncode, run.ended.stdout) == (0, "")  # the program is ended after the step
    (outcome,) = run.outcomes
    assert (outcome.is_over, outcome.steps, outcome.calls) == (True, 1, len(operators))
    with run.record as record:
        assert {call.phase for call in record.calls} == {"forward", "backward", "optimizer"}
        assert {"conv", "norm", "drop", "head"} <= {call.module for call in record.calls}
        assert (
            record.header.complete and record.header.program == "train.py" and record.header.device == "cpu"
        )


def test_later_steps_and_a_program_that_goes_on(tmp_path: Path) -> None:
    run = recorded(THREE_STEPS, tmp_path, first_step=2, steps=2, keep_going=True)
    assert run.ended.stdout == "trained to the end\n"
    steps = steps_of(run)
    assert set(steps) == {2, 3}
    operators = run.operators()
    assert operators[0] == "convolution"
    assert steps[3] > steps[2]  # the batch of the third step is made after the second
    assert operators[steps[2] :].count("randn") == 1


def test_all_steps_to_the_programs_own_end(tmp_path: Path) -> None:
    run = recorded(THREE_STEPS, tmp_path, steps=None)
    assert set(steps_of(run)) == {1, 2, 3}
    assert run.outcomes[0].steps == 3 and "trained to the end" in run.ended.stdout


def test_modules_operators_and_phases_are_chosen(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("module", "operator", "phase")]
    for folder in folders:
        folder.mkdir()
    of_module = recorded(THREE_STEPS, folders[0], modules=("norm",))
    with of_module.record as record:
        assert {call.module for call in record.calls} == {"norm"}
        assert {call.phase for call in record.calls} == {"forward", "backward"}
        assert record.header.selected == "modules norm"
    assert set(recorded(THREE_STEPS, folders[1], operators=("convolution*",)).operators()) == {
        "convolution",
        "convolution_backward",
    }
    with recorded(THREE_STEPS, folders[2], phases=("optimizer",)).record as record:
        assert {call.phase for call in record.calls} == {"optimizer"}


def test_statistics_alone(tmp_path: Path) -> None:
    run = recorded(THREE_STEPS, tmp_path, kept=Kept.STATISTICS, steps=None)
    with run.record as record:
        convolution = next(call for call in record.calls if call.operator == "aten::convolution")
        assert convolution.outputs[0].offset is None
        statistics = convolution.outputs[0].statistics
        assert statistics is not None and statistics.count == 4 * 4 * 6 * 6 and statistics.rms > 0


SEVERAL = """\
import torch

first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (first, second)]


def train(part, optimizer):
    optimizer.zero_grad()
    part(torch.ones(2, 3)).sum().backward()
    optimizer.step()


"""


def test_a_step_of_several_optimizers_ends_with_the_last_of_them(tmp_path: Path) -> None:
    loop = "for number in range(3):\n    train(first, optimizers[0])\n    train(second, optimizers[1])\n"
    run = recorded(SEVERAL + loop, tmp_path, steps=2)
    assert steps_of(run).keys() == {1, 2}
    assert run.operators().count("addmm") == 4


def test_a_step_ends_when_one_optimizer_steps_again(tmp_path: Path) -> None:
    loop = f"{SEVERAL}for number in range(9):\n    train(first, optimizers[0])\n"
    run = recorded(loop, tmp_path, steps=3)
    assert steps_of(run).keys() == {1, 2, 3} and run.operators().count("addmm") == 3
    with run.record as record:
        calls = [(call.step, call.phase) for call in record.calls if call.operator == "aten::addmm"]
    assert [step for step, _ in calls] == [
        1,
        1,
        3,
    ]  # the first step is over when the second one's optimizer begins


def test_a_step_that_was_over_before_it_was_known_to_begin_is_made_up_for(tmp_path: Path) -> None:
    loop = f"{SEVERAL}for number in range(9):\n    train(first, optimizers[0])\n"
    run = recorded(loop, tmp_path, first_step=2)
    assert steps_of(run).keys() == {2} and run.operators().count("addmm") == 1


SKIPPED = """\
import torch

layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
for number in range(2):
    optimizer.zero_grad()
    loss = layer(torch.full((1, 2), 3e38 if number == 0 else 1.0)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_a_step_that_a_gradient_scaler_leaves_out_is_a_step(tmp_path: Path) -> None:
    run = recorded(SKIPPED, tmp_path, first_step=2)
    assert steps_of(run).keys() == {2}
    assert run.operators().count("addmm") == 1


def test_a_program_without_an_optimizer_is_recorded_to_its_end(tmp_path: Path) -> None:
    code = "import torch\nlayer = torch.nn.Linear(2, 2)\nlayer(torch.ones(1, 2))\nlayer(torch.ones(1, 2))\n"
    run = recorded(code, tmp_path)
    assert run.operators().count("addmm") == 2
    assert (run.outcomes[0].steps, run.outcomes[0].is_over) == (0, True)


@pytest.mark.parametrize("whole", [False, True])
def test_a_program_without_modules_is_recorded_if_that_is_asked_for(whole: bool, tmp_path: Path) -> None:
    run = recorded("import torch\na = torch.tensor([2, 2])\na.add_(1)\n", tmp_path, whole=whole)
    assert [file.name for file in run.paths] == (["out.h5"] if whole else [])
    if whole:
        assert "add_.Tensor" in run.operators()


AUTOCAST = """\
import torch

layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = layer(torch.ones(2, 4)).float().sum()
loss.backward()
optimizer.step()
"""


def test_what_autocast_casts_is_seen(tmp_path: Path) -> None:
    with recorded(AUTOCAST, tmp_path).record as record:
        product = next(call for call in record.calls if call.operator == "aten::addmm")
        assert {tensor.dtype for tensor in product.inputs} == {"bfloat16"}
        assert "aten::_to_copy" in {call.operator for call in record.calls}


def test_seeds_are_set_for_a_program_that_sets_none(tmp_path: Path) -> None:
    code = TRAINING.replace("torch.manual_seed(0)\n", "") + "step()\n"
    runs = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        runs.append(recorded(code, tmp_path / str(number), seed=7))
    with runs[0].record as one, runs[1].record as other:
        assert bytes(one.raw(one.calls[0].inputs[1])) == bytes(other.raw(other.calls[0].inputs[1]))
