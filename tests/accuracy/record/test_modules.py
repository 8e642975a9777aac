"""Records of modules: what they are given and answer, and the gradients of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.utils.checkpoint import checkpoint

from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import Call, Kept, RecordHeader
from torchferry.accuracy.record.modules import ModuleRecorder
from torchferry.accuracy.record.settings import Selection

HEADER = RecordHeader(Kept.TENSORS, "test", "cpu", torch.__version__, modules_only=True)


def recorded(
    path: Path,
    program: Callable[[ModuleRecorder], object],
    selection: Selection | None = None,
    kept: Kept = Kept.TENSORS,
) -> Record:
    """The record of the modules that a program calls."""
    recorder = ModuleRecorder(path / "record.h5", replace(HEADER, kept=kept), selection)
    recorder.start()
    try:
        program(recorder)
    finally:
        recorder.stop()
    return open_record(path / "record.h5")


def shown(call: Call) -> str:
    """module 0.1, output_gradient Net."""
    return f"{call.operator} {call.module}"


class Block(nn.Module):
    """Two layers and a way around them; takes an argument by its name, and changes a tensor in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.second = nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        """A dictionary, as large models answer with."""
        return {"x": x + scale * self.second(self.act(self.first(x)))}


class Net(nn.Module):
    """A block and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.block, self.head = Block(), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.head(self.block(x, scale=torch.full((1,), 2.0))["x"])  # type: ignore[no-any-return]


def test_what_modules_are_given_and_answer(tmp_path: Path) -> None:
    net, x = Net(), torch.randn(3, 4)
    record = recorded(tmp_path, lambda _: net(x))
    assert list(map(shown, record.calls)) == [
        "module block.first", "module block.act", "module block.second", "module block", "module head", "module Net",
    ]  # fmt: skip
    first, act, _, block, *_, whole = record.calls
    assert (first.phase, first.model, first.node) == ("forward", "Net", "Linear")
    assert first.place.startswith("tests/accuracy/record/test_modules.py:")
    assert torch.equal(record.tensor(first.inputs[0]), x)
    before = nn.functional.linear(x, net.block.first.weight, net.block.first.bias)
    assert torch.equal(record.tensor(act.inputs[0]), before)  # as it was when the module was called
    assert torch.equal(record.tensor(act.outputs[0]), before.relu())
    assert [record.tensor(each).tolist() for each in block.inputs] == [x.tolist(), [2.0]]
    assert torch.equal(record.tensor(whole.outputs[0]), net(x))
    assert record.header.complete and record.header.modules_only


def test_gradients_belong_to_who_makes_them(tmp_path: Path) -> None:
    net, x = Net(), torch.randn(3, 4, requires_grad=True)
    record = recorded(tmp_path, lambda _: net(x).sum().backward())
    gradients = [call for call in record.calls if call.phase == "backward"]
    assert list(map(shown, gradients)) == [
        "output_gradient head",
        "input_gradient head",
        "output_gradient block.second",
        "input_gradient block.second",
        "input_gradient block.act",
        "input_gradient block.first",
    ]
    assert x.grad is not None
    assert torch.equal(record.tensor(gradients[0].outputs[0]), torch.ones(3, 2))
    assert torch.equal(record.tensor(gradients[-1].outputs[0]), x.grad)


@pytest.mark.parametrize("kept", list(Kept))
def test_the_program_does_not_notice(tmp_path: Path, kept: Kept) -> None:
    def train() -> tuple[list[float], list[torch.Tensor]]:
        net = Net()
        optimizer = torch.optim.Adam(net.parameters())
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(torch.randn(5, 4)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [each.detach() for each in net.parameters()]

    hooks = len(modules._global_forward_hooks), len(modules._global_forward_pre_hooks)
    losses, weights = train()
    found: list[Any] = []
    record = recorded(tmp_path, lambda _: found.extend(train()), kept=kept)
    assert found[0] == losses and all(map(torch.equal, found[1], weights))
    assert record.header.notes == () and len(record.calls) == 3 * (6 + 5)
    assert (len(modules._global_forward_hooks), len(modules._global_forward_pre_hooks)) == hooks


def test_steps_and_patterns(tmp_path: Path) -> None:
    net = Net()

    def program(recorder: ModuleRecorder) -> None:
        for _ in range(7):
            net(torch.randn(3, 4)).sum().backward()
            recorder.next_step()

    record = recorded(tmp_path, program, Selection(modules=("block",), phases=("forward",), every=3))
    assert Counter(call.step for call in record.calls) == {1: 4, 3: 4, 6: 4}
    assert {call.module for call in record.calls} == {"block", "block.first", "block.act", "block.second"}


def test_a_module_that_raises_an_error(tmp_path: Path) -> None:
    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError(self.inner(x).shape)

    def program(_: ModuleRecorder) -> None:
        with pytest.raises(ValueError, match="3, 4"):
            Failing()(torch.ones(3, 4))
        nn.Tanh()(torch.ones(3))

    record = recorded(tmp_path, program)
    assert list(map(shown, record.calls)) == ["module inner", "module Tanh"] and record.header.notes == ()


def test_a_checkpoint_calls_modules_once_more_and_they_count_once(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    x = torch.ones(3, 4, requires_grad=True)
    record = recorded(tmp_path, lambda _: checkpoint(net, x, use_reentrant=False).sum().backward())
    assert Counter(call.operator for call in record.calls if call.phase == "forward") == {"module": 3}


def test_a_mistake_of_ours_ends_the_recording_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()

    def program(recorder: ModuleRecorder) -> None:
        monkeypatch.setattr(recorder._observer, "before", lambda *_: 1 / 0)
        assert net(torch.ones(3, 4)).shape == (3, 2)

    record = recorded(tmp_path, program)
    assert record.header.notes == ("ended early: ZeroDivisionError: division by zero",)
