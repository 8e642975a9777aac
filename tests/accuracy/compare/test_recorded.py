"""Records of real trainings: statistics, then tensors, lead from a run of many steps to the operator that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from tests.accuracy.compare.records import GOLDEN, MINE
from tests.accuracy.record.recording import recorded
from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge import pieces
from torchferry.accuracy.model import Kept
from torchferry.accuracy.record.recorder import Recorder

STEPS = 3


class WrongGelu(TorchDispatchMode):
    """A kernel whose results are wrong in part, once it is on; the recorder sees them as any other's."""

    is_on = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.is_on and func is torch.ops.aten.gelu.default:
            result.view(-1)[-20:] *= 1.5
        return result


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)
        self.norm = nn.BatchNorm1d(4)
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x))
        for layer in self.layers:
            x = x + functional.gelu(layer(x))
        return x


def record(
    path: Path, kept: Kept, wrong_from: int = STEPS + 1, optimizer: Callable[..., Any] = torch.optim.AdamW
) -> Path:
    """A training of a few steps."""
    torch.manual_seed(0)
    model = Net()
    stepping = optimizer(model.parameters(), lr=1e-2)
    header = replace(MINE if wrong_from <= STEPS else GOLDEN, kept=kept)
    recorder = Recorder(path, header)
    with WrongGelu() as kernel:
        recorder.start()
        for step in range(1, STEPS + 1):
            kernel.is_on = step >= wrong_from
            loss = functional.mse_loss(model(torch.randn(8, 2, 14)), torch.zeros(8, 4, 12))
            stepping.zero_grad()
            loss.backward()
            stepping.step()
            recorder.next_step()
        recorder.stop()
    return path


def compared(folder: Path, kept: Kept, **changes: Any) -> RankComparison:
    (comparison,) = compare_files(
        record(folder / "mine.h5", kept, **changes), record(folder / "golden.h5", kept)
    )
    return comparison


def culprit(comparison: RankComparison) -> tuple[str, int, str]:
    assert comparison.culprit is not None
    call = comparison.pairs[comparison.culprit].mine
    assert call is not None
    return call.operator, call.step, comparison.pairs[comparison.culprit].judgement.verdict.value


@pytest.mark.parametrize(("kept", "verdict"), [(Kept.STATISTICS, "suspicious"), (Kept.TENSORS, "fault")])
def test_the_operator_and_the_step(tmp_path: Path, kept: Kept, verdict: str) -> None:
    comparison = compared(tmp_path, kept, wrong_from=2)
    assert culprit(comparison) == ("aten::gelu", 2, verdict)
    assert [curve.name for curve in comparison.curves] == ["loss", "gradient norm"]
    loss = comparison.curves[0]
    assert loss.mine[0] == loss.golden[0] and loss.mine[1] != loss.golden[1]


@pytest.mark.parametrize("kept", [Kept.STATISTICS, Kept.TENSORS])
def test_the_same_training_twice(tmp_path: Path, kept: Kept) -> None:
    comparison = compared(tmp_path, kept)
    assert comparison.culprit is None
    assert {pair.how for pair in comparison.pairs} == {"same"}


def test_statistics_against_tensors(tmp_path: Path) -> None:
    """Those of the tensors are taken when they are needed."""
    mine = record(tmp_path / "mine.h5", Kept.STATISTICS, wrong_from=2)
    (comparison,) = compare_files(mine, record(tmp_path / "golden.h5", Kept.TENSORS))
    assert culprit(comparison) == ("aten::gelu", 2, "suspicious")
    (turned,) = compare_files(
        record(tmp_path / "mine.h5", Kept.TENSORS, wrong_from=2),
        record(tmp_path / "golden.h5", Kept.STATISTICS),
    )
    assert culprit(turned) == ("aten::gelu", 2, "fault")


def test_another_implementation_of_the_optimizer(tmp_path: Path) -> None:
    """One call for all parameters, or calls for each: nothing is wrong, and nothing counts as missing."""

    def single(parameters: Any, lr: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=lr, foreach=True)

    comparison = compared(tmp_path, Kept.TENSORS, optimizer=single)
    assert comparison.culprit is None
    steps = [pair for pair in comparison.pairs if pair.mine and pair.mine.phase == "optimizer"]
    assert not any(pair.how == "" for pair in steps)


def test_the_norm_of_the_gradients(tmp_path: Path) -> None:
    """As it was read by the optimizer, from statistics and from tensors."""
    curves = [compared(tmp_path, kept).curves[1] for kept in (Kept.STATISTICS, Kept.TENSORS)]
    assert curves[0].mine == pytest.approx(curves[1].mine, rel=1e-6)
    torch.manual_seed(0)
    model = Net()
    functional.mse_loss(model(torch.randn(8, 2, 14)), torch.zeros(8, 4, 12)).backward()
    norm = (
        sum(float(each.grad.double().norm()) ** 2 for each in model.parameters() if each.grad is not None)
        ** 0.5
    )
    assert curves[0].mine[0] == pytest.approx(norm, rel=1e-5)


def _record_scaled(path: Path, shift: float, is_scaled: bool) -> Path:
    """A training whose losses are multiplied by the factor of a GradScaler, or are not."""
    torch.manual_seed(0)
    model = Net()
    stepping = torch.optim.SGD(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, enabled=is_scaled)
    recorder = Recorder(path, GOLDEN)
    recorder.start()
    for _ in range(STEPS):
        loss = functional.mse_loss(model(torch.randn(8, 2, 14)), torch.full((8, 4, 12), shift))
        stepping.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(stepping)
        recorder.next_step()  # as a recorder does: at the optimizer's step, before the factor is updated
        scaler.update()
    recorder.stop()
    return path


def test_losses_are_those_before_the_factor_of_a_scaler(tmp_path: Path) -> None:
    found = {}
    for is_scaled in (False, True):
        mine = _record_scaled(tmp_path / "mine.h5", 0.0, is_scaled)
        (found[is_scaled],) = compare_files(mine, _record_scaled(tmp_path / "golden.h5", 1e-3, is_scaled))
    plain, scaled = (
        {(each.what, each.step): each.mean_abs for each in found[key].network} for key in (False, True)
    )
    assert plain == pytest.approx(scaled, rel=1e-3)
    for one, other in zip(found[False].curves[:1], found[True].curves[:1], strict=True):
        assert one.mine == pytest.approx(other.mine, rel=1e-5)
        assert max(value or 0.0 for value in one.mine) < 10


def test_any_number_of_threads_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large calls are judged in parts, which threads share."""
    monkeypatch.setattr(pieces, "LARGE", 1 << 12)
    monkeypatch.setattr(pieces, "BLOCK", 1 << 12)
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)

    def program() -> None:
        x = torch.randn(96, 128, dtype=torch.bfloat16)
        torch.log_softmax((x @ torch.randn(128, 64, dtype=torch.bfloat16)).float(), 1).mean()
        torch._foreach_mul([torch.randn(90, 90) for _ in range(3)], 2.0)

    recorded(tmp_path, program).close()
    said = []
    for jobs in (1, 3):
        (comparison,) = compare_files(tmp_path / "record.h5", None, ComparingPlan(jobs))
        said.append([str(pair.judgement) for pair in comparison.pairs])
    assert said[0] == said[1]
    assert sum("verdict=<Verdict.NORMAL" in each for each in said[0]) >= 5
