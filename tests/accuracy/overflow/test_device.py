"""On a device that computes by itself, results are looked at in batches; here the CPU is taken for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.overflow import figures
from torchferry.accuracy.overflow.check import CheckOptions, OverflowCheck
from torchferry.accuracy.overflow.figures import CheckedCall
from torchferry.accuracy.overflow.model import OverflowEvent, OverflowKind
from torchferry.accuracy.overflow.process import CheckingMode, save_call


@contextmanager
def checked(file: Path, found: list[OverflowEvent]) -> Iterator[OverflowCheck]:
    nowhere: frozenset[str] = frozenset()

    def save(call: CheckedCall) -> str:
        save_call(file, RecordHeader(Kept.TENSORS, "", "cpu", ""), call, lambda _: "")
        return str(file)

    check = OverflowCheck(CheckOptions(host_devices=nowhere), save, found.append)
    mode = CheckingMode(check)
    with mode.switched_on():
        yield check
        check.flush()


def test_nothing_is_judged_before_the_batch_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_CALLS", 5)
    found: list[OverflowEvent] = []
    with checked(tmp_path / "one.h5", found):
        x = torch.full((4,), -2.0)
        y = x.log()
        assert not found
        for _ in range(5):
            y = y + 1
        assert [(event.kind, event.call.operator) for event in found] == [(OverflowKind.NAN, "aten::log")]


CASES: dict[str, tuple[Callable[[torch.Tensor], object], OverflowKind, str, list[float]]] = {
    "an input that a later call overwrites": (
        lambda x: ((x - 5).log(), x.zero_()), OverflowKind.NAN, "aten::log", [-4.0, -3.0]),
    "an input that the call itself overwrites": (
        lambda x: x.mul_(2.0).mul_(3e38), OverflowKind.INFINITE, "aten::mul_.Tensor", [2.0, 4.0]),
    "an input that a later call overwrites unread": (
        lambda x: (x.div(0.0), x.zero_()), OverflowKind.INFINITE, "aten::div.Tensor", [1.0, 2.0]),
    "an input that a later call changes": (
        lambda x: (x.div(0.0), x.add_(1)), OverflowKind.INFINITE, "aten::div.Tensor", [1.0, 2.0]),
    "half precision": (
        lambda x: (x.half() * 300 * 300), OverflowKind.INFINITE, "aten::mul.Tensor", [300.0, 600.0]),
    "complex numbers": (
        lambda x: torch.complex(x, x) / 0, OverflowKind.INFINITE, "aten::div.Tensor", [1.0, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_those_from_before(case: str, tmp_path: Path) -> None:
    run, kind, operator, values = CASES[case]
    found: list[OverflowEvent] = []
    with checked(tmp_path / "one.h5", found):
        x = torch.tensor([1.0, 2.0])
        run(x)
        x.fill_(7.0)
    event = found[0]
    assert (event.kind, event.call.operator) == (kind, operator)
    with open_record(Path(event.record)) as record:
        (call,) = record.calls
        saved = record.tensor(call.inputs[0])
        assert saved.real.tolist() == values if saved.is_complex() else saved.tolist() == values
    statistics = event.call.outputs[0].statistics
    assert statistics is not None and statistics.nans + statistics.infinities > 0


def test_infinities_that_are_passed_on_and_finite_results(tmp_path: Path) -> None:
    found: list[OverflowEvent] = []
    with checked(tmp_path / "one.h5", found) as check:
        scores = torch.randn(4, 4)
        masked = scores.masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf"))
        (masked.softmax(-1) @ scores).sum()
        torch._foreach_add([torch.ones(2)] * 600, 1.0)
    assert not found and check.operators > 4
    assert not (tmp_path / "one.h5").exists()
