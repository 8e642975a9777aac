"""A program whose operators get the inputs of a record: own errors show, inherited ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.accuracy.file.reader import open_record

from .recording import REFERENCE, SIMULATED, TRAINING, Run, equal_outputs, recorded

# A kernel of the simulated device that is wrong: all of its results are a little too large.
WRONG = """\
library = torch.library.Library("aten", "IMPL")
host = torch.ops.aten.native_batch_norm.default


def wrong(input, *rest):
    result = host(input.cpu(), *(each.cpu() if isinstance(each, torch.Tensor) else each for each in rest))
    return tuple((each * 1.01 if place == 0 else each).to(input.device) for place, each in enumerate(result))


library.impl("native_batch_norm", wrong, "PrivateUse1")
"""
OTHER_DATA = "torch.manual_seed(5)\nwith torch.no_grad():\n    net.conv.weight.add_(1)\n"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps on the CPU, as CUDA would make them."""
    run = recorded(f"{TRAINING}step()\nstep()\n", tmp_path_factory.mktemp("golden"), REFERENCE, steps=2)
    assert run.outcomes[0].is_over
    return run.paths[0]


def differing(run: Run, golden: Path) -> list[str]:
    with run.record as mine, open_record(golden) as other:
        count, wrong = equal_outputs(mine, other)
        assert count > 100
        return wrong


def test_a_right_device_gives_equal_outputs_from_equal_inputs(golden: Path, tmp_path: Path) -> None:
    run = recorded(f"{TRAINING}step()\nstep()\n", tmp_path, SIMULATED, steps=2, replay=str(golden))
    assert differing(run, golden) == []
    (outcome,) = run.outcomes
    assert outcome.paired == outcome.recorded > 50 and outcome.unpaired == 0
    with run.record as record:
        assert record.header.replayed == str(golden)
        assert (record.header.device, record.header.simulated) == ("npu", True)
        assert {call.step for call in record.calls} == {1, 2}


def test_other_weights_and_batches_of_the_program_do_not_matter(golden: Path, tmp_path: Path) -> None:
    run = recorded(
        f"{TRAINING}{OTHER_DATA}step()\nstep()\n", tmp_path, SIMULATED, steps=2, replay=str(golden)
    )
    # the batch of the second step is drawn by the program itself, from the recorded state of the generator
    assert differing(run, golden) == []


def test_one_wrong_operator_shows_alone(golden: Path, tmp_path: Path) -> None:
    code = f"{TRAINING}{WRONG}step()\nstep()\n"
    (tmp_path / "plain").mkdir()
    plain = recorded(code, tmp_path / "plain", SIMULATED, steps=2)
    assert len(differing(plain, golden)) > 10  # without a replay, all that follows inherits the error
    replayed = recorded(code, tmp_path, SIMULATED, steps=2, replay=str(golden))
    assert differing(replayed, golden) == ["aten::native_batch_norm"]


def test_operators_that_the_record_does_not_have_compute_with_their_own_inputs(
    golden: Path, tmp_path: Path
) -> None:
    changed = TRAINING.replace("torch.relu_(", "torch.relu_(2 * ")
    run = recorded(f"{changed}step()\nstep()\n", tmp_path, REFERENCE, steps=2, replay=str(golden))
    (outcome,) = run.outcomes
    assert outcome.paired == outcome.recorded
    assert 0 < outcome.unpaired < 10 and "aten::mul.Tensor" in outcome.examples
    with run.record as mine, open_record(golden) as other:
        for operator in ("aten::relu_", "aten::convolution_backward"):
            ours, theirs = (
                [
                    [bytes(record.raw(each)) for each in (call.inputs[0], call.outputs[0])]
                    for call in record.calls
                    if call.operator == operator
                ]
                for record in (mine, other)
            )
            assert len(ours) == 2 and ours == theirs


def test_a_program_goes_on_with_recorded_numbers_where_it_cannot_draw_the_same(
    golden: Path, tmp_path: Path
) -> None:
    """A record of another device has a state that this device's generator does not take."""
    code = f"{TRAINING}from torchferry.accuracy.record.replaying import ReplayingMode\n"
    code += "ReplayingMode._draw_again = lambda self, call, given: False\ntorch.manual_seed(9)\nstep()\n"
    run = recorded(code, tmp_path, REFERENCE, replay=str(golden))
    with run.record as mine, open_record(golden) as other:
        masks = [
            next(bytes(record.raw(call.outputs[0])) for call in record.calls if call.operator == operator)
            for record in (mine, other)
            for operator in ("aten::bernoulli_.float", "aten::div_.Scalar")
        ]
        assert masks[0] != masks[2]  # what was drawn here is in the record
        assert masks[1] == masks[3]  # and what follows computes with what was drawn there


GIVEN_BACK = """\
import torch
library = torch.library.Library("aten", "IMPL")
IF library.impl("clone", lambda tensor, memory_format=None: tensor, "CPU")
x = torch.arange(4.0) + 1
x.clone().mul_(3)
x.sin()
"""


def test_what_the_program_writes_to_is_its_own_memory(tmp_path: Path) -> None:
    """An operator may answer with the very tensor that it was given, here a recorded one."""
    (tmp_path / "golden").mkdir()
    first = recorded(GIVEN_BACK.replace("IF", "if False:"), tmp_path / "golden", whole=True)
    code = GIVEN_BACK.replace("IF", "if True:")
    run = recorded(code, tmp_path, whole=True, replay=str(first.paths[0]))
    with run.record as mine, open_record(first.paths[0]) as other:
        assert "aten::sin" in {call.operator for call in mine.calls}
        assert equal_outputs(mine, other)[1] == []
