"""What is recorded of a call: arguments before it, results and mutated arguments after it, and from where."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.accuracy.record.recording import call_of, make_recorder, names, recorded
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Call, Kept, Special, TensorRef
from torchferry.accuracy.record.settings import Selection


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> float:
    """One step of training."""
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def make_net() -> nn.Module:
    """A convolution, its norm, and dropout."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten())


def test_a_call(tmp_path: Path) -> None:
    x, y = torch.randn(2, 3), torch.randn(3)
    record = recorded(tmp_path, lambda: torch.add(x, y, alpha=2))
    (call,) = record.calls
    assert (call.operator, call.number, call.step, call.phase) == ("aten::add.Tensor", 1, 1, "forward")
    assert call.place.startswith("tests/accuracy/record/test_recorder.py:")
    assert call.arguments == (("self", TensorRef(0)), ("other", TensorRef(1)), ("alpha", 2))
    assert [tensor.name for tensor in (*call.inputs, *call.outputs)] == [
        "input/self",
        "input/other",
        "output/output_0",
    ]
    assert call.results == TensorRef(0)
    assert torch.equal(record.tensor(call.inputs[0]), x)
    assert torch.equal(record.tensor(call.outputs[0]), x + 2 * y)


def test_values_of_every_kind(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)

    def program() -> None:
        torch.zeros(2, dtype=torch.float64)
        torch.ones(2).to(memory_format=torch.contiguous_format, copy=True)
        torch.rand(2, generator=generator)
        torch.ones(4)[[0, 1]]
        torch.nn.functional.pad(torch.ones(2), (1, 1), value=float("nan"))
        torch.clamp(torch.ones(2), -0.0, None)

    record = recorded(tmp_path, program)
    by_name = {call.operator: dict(call.arguments) for call in record.calls}
    assert by_name["aten::zeros"]["dtype"] == Special("dtype", "float64")
    assert by_name["aten::rand.generator"]["generator"] == Special("generator", "cpu")
    assert by_name["aten::index.Tensor"]["indices"] == (TensorRef(1),)
    assert by_name["aten::clamp"]["min"] == 0.0 and str(by_name["aten::clamp"]["min"]) == "-0.0"
    assert by_name["aten::constant_pad_nd"]["pad"] == (1, 1)
    assert by_name["aten::constant_pad_nd"]["value"] != by_name["aten::constant_pad_nd"]["value"]


def test_equal_numbers_of_other_types_are_told_apart(tmp_path: Path) -> None:
    x = torch.ones(2)

    def program() -> None:
        for value in (1, 1.0, True, 0.0, -0.0):
            torch.mul(x, value)

    for kept in (Kept.TENSORS, Kept.STATISTICS):
        record = recorded(tmp_path, program, kept)
        values = [call.arguments[1][1] for call in record.calls]
        assert [repr(value) for value in values] == ["1", "1.0", "True", "0.0", "-0.0"]


@pytest.mark.parametrize("kept", list(Kept))
def test_what_is_written_to_is_recorded_before_and_after(tmp_path: Path, kept: Kept) -> None:
    x = torch.ones(3)
    record = recorded(tmp_path, lambda: x.add_(1), kept)
    (call,) = record.calls
    before, after = call.inputs[0], call.outputs[0]
    assert (before.name, after.name, call.results) == ("input/self", "output/self", TensorRef(0))
    assert before.content != after.content
    if kept is Kept.STATISTICS:
        assert before.statistics is not None and before.statistics.mean == 1
    else:
        assert record.tensor(before).tolist() == [1, 1, 1]
    if kept is Kept.TENSORS:
        assert record.tensor(after).tolist() == [2, 2, 2]
    else:
        assert after.offset is None and after.statistics is not None and after.statistics.mean == 2


def test_statistics_of_batch_norm_after_their_update(tmp_path: Path) -> None:
    norm = nn.BatchNorm2d(2)
    record = recorded(tmp_path, lambda: norm(torch.ones(2, 2, 3, 3) * 5))
    call = call_of(record, "native_batch_norm")
    running = {tensor.name: tensor for tensor in (*call.inputs, *call.outputs)}
    assert record.tensor(running["input/running_mean"]).tolist() == [0, 0]
    assert record.tensor(running["output/running_mean"]).tolist() == [0.5, 0.5]
    assert running["input/running_mean"].role == "buffer"
    assert running["input/weight"].role == "parameter"


def test_lists_of_tensors(tmp_path: Path) -> None:
    pair = [torch.ones(2), torch.zeros(3)]
    record = recorded(tmp_path, lambda: (torch._foreach_add_(pair, 1), torch.split(torch.arange(4), 2)))
    adding, splitting = call_of(record, "_foreach_add_.Scalar"), call_of(record, "split.Tensor")
    assert [tensor.name for tensor in adding.outputs] == ["output/self/self_0", "output/self/self_1"]
    assert record.tensor(adding.outputs[1]).tolist() == [1, 1, 1]
    assert splitting.results == (TensorRef(0), TensorRef(1))


def test_what_an_operator_does_not_read_is_not_read(tmp_path: Path) -> None:
    x = torch.full((2,), 7.0)

    def program() -> None:
        torch.add(torch.ones(2), 1, out=torch.empty(2))
        x.zero_()

    record = recorded(tmp_path, program)
    assert call_of(record, "empty.memory_format").outputs[0].unread == "uninitialised"
    assert call_of(record, "add.out").inputs[-1].unread == "overwritten"
    assert record.tensor(call_of(record, "add.out").outputs[0]).tolist() == [2, 2]
    assert call_of(record, "zero_").inputs[0].unread == "overwritten"


def test_phases_modules_and_steps(tmp_path: Path) -> None:
    model = make_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    for _ in range(2):
        step_of(model, optimizer, torch.ones(2, 3, 5, 5))
        recorder.next_step()
    recorder.stop()
    calls = open_record(tmp_path / "record.h5").calls
    assert {call.phase for call in calls} == {"forward", "backward", "optimizer"}
    assert {call.step for call in calls} == {1, 2}
    assert {call.module for call in calls if call.operator == "aten::convolution"} == {"0"}
    backward = next(call for call in calls if call.operator == "aten::convolution_backward")
    assert (backward.module, backward.node, backward.model) == ("0", "ConvolutionBackward0", "Sequential")
    assert recorder.calls == len(calls)


def test_a_parameter_is_read_once_for_each_update(tmp_path: Path) -> None:
    layer = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for kept in (Kept.STATISTICS, Kept.TENSORS):
        recorder = make_recorder(tmp_path / "record.h5", kept)
        recorder.start()
        for _ in range(3):
            step_of(layer, optimizer, torch.ones(2, 3))
        recorder.stop()
        calls = open_record(tmp_path / "record.h5").calls
        updated = [call.outputs[0].content for call in calls if call.phase == "optimizer"]
        used = {tensor.content for call in calls if call.operator == "aten::addmm" for tensor in call.inputs}
        assert set(updated[:4]) <= used


def test_views_lie_in_what_they_are_views_of(tmp_path: Path) -> None:
    x = torch.arange(24.0).view(2, 3, 4)

    def program() -> None:
        x.neg()
        x[1].abs()
        x.transpose(0, 2).exp()
        x[:, :, ::2].sin()
        x[:, :1].expand(2, 3, 4).cos()

    record = recorded(tmp_path, program)
    whole = call_of(record, "neg").inputs[0]
    part, turned = call_of(record, "abs").inputs[0], call_of(record, "exp").inputs[0]
    strided, repeated = call_of(record, "sin").inputs[0], call_of(record, "cos").inputs[0]
    assert whole.offset is not None and part.offset == whole.offset + 48
    assert (turned.offset, turned.content) == (whole.offset, whole.content)
    assert torch.equal(record.tensor(turned), x.transpose(0, 2))
    assert not strided.is_dense and torch.equal(record.tensor(strided), x[:, :, ::2])
    assert repeated.nbytes == 32 and torch.equal(record.tensor(repeated), x[:, :1].expand(2, 3, 4))


def test_conjugates_and_negatives_are_what_they_stand_for(tmp_path: Path) -> None:
    x = torch.randn(3, dtype=torch.complex64)
    real = torch.randn(3)
    record = recorded(
        tmp_path, lambda: (torch.add(real, x.conj().imag), torch.vdot(x, x), x.conj().t().clone())
    )
    adding = call_of(record, "add.Tensor")
    assert torch.equal(record.tensor(adding.inputs[1]), x.conj().imag.resolve_neg())
    assert torch.equal(record.tensor(adding.inputs[0]), real)


def test_random_operators_can_be_computed_again(tmp_path: Path) -> None:
    x = torch.ones(50)
    own = torch.Generator().manual_seed(3)

    def program() -> None:
        functional.dropout(x, 0.5)
        torch.rand(4)
        torch.rand(4, generator=own)

    record = recorded(tmp_path, program)
    for operator, again in (
        ("bernoulli_.float", lambda: torch.empty(50).bernoulli_(0.5)),
        ("rand", lambda: torch.rand(4)),
        ("rand.generator", lambda: torch.rand(4)),
    ):
        call = call_of(record, operator)
        assert call.random is not None and call.random.device == "cpu"
        torch.set_rng_state(torch.frombuffer(bytearray(record.state(call.random)), dtype=torch.uint8))
        assert torch.equal(record.tensor(call.outputs[0]), again())


def test_an_unchanged_generator_is_stored_once(tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(3):
            torch.manual_seed(5)
            torch.rand(2)

    record = recorded(tmp_path, program)
    assert len({call.random.offset for call in record.calls if call.random}) == 1


@pytest.mark.parametrize(
    ("selection", "kept", "left"),
    [
        (Selection(), 7, ""),
        (Selection(modules=("0",)), 4, "modules 0"),
        (Selection(modules=("Sequential.1",)), 1, "modules Sequential.1"),
        (Selection(operators=("*relu*", "mm")), 1, "operators *relu*, mm"),
        (Selection(phases=("backward",)), 0, "phases backward"),
    ],
)
def test_selection(tmp_path: Path, selection: Selection, kept: int, left: str) -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.ReLU(), nn.Identity())

    def program() -> None:
        with torch.no_grad():
            model(torch.ones(1, 2)).sum()

    record = recorded(tmp_path, program, selection=selection)
    assert (len(record.calls), selection.describe()) == (kept, left), names(record)


def test_a_call_that_is_left_out_still_writes(tmp_path: Path) -> None:
    x = torch.ones(2)

    def program() -> None:
        x.neg()
        x.mul_(3)
        x.neg()

    record = recorded(tmp_path, program, selection=Selection(operators=("neg",)))
    assert [record.tensor(call.inputs[0]).tolist() for call in record.calls] == [[1, 1], [3, 3]]


def test_steps_that_are_left_out(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path / "record.h5", selection=Selection(first_step=2, last_step=2))
    x = torch.ones(1)
    recorder.start()
    for _ in range(3):
        x.add_(1)
        recorder.next_step()
    recorder.stop()
    (call,) = open_record(tmp_path / "record.h5").calls
    assert call.step == 2 and call.inputs[0].statistics is None


def test_inputs_alone_have_their_bytes(tmp_path: Path) -> None:
    x = torch.ones(2)
    record = recorded(tmp_path, lambda: x.neg().abs(), Kept.INPUTS)
    first, second = record.calls
    assert first.outputs[0].offset is None and first.outputs[0].statistics is not None
    assert record.tensor(second.inputs[0]).tolist() == [-1, -1]
    assert second.inputs[0].content == first.outputs[0].content


def test_empty_tensors(tmp_path: Path) -> None:
    record = recorded(tmp_path, lambda: torch.cat([torch.ones(0), torch.ones(2)]))
    call: Call = call_of(record, "cat")
    assert record.tensor(call.inputs[0]).shape == (0,)
    assert record.tensor(call.outputs[0]).tolist() == [1, 1]


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool, torch.complex64],
)
def test_bits_of_every_dtype(tmp_path: Path, dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 3, -2]).to(dtype)
    record = recorded(tmp_path, lambda: x.clone())
    assert torch.equal(record.tensor(call_of(record, "clone").outputs[0]), x)
