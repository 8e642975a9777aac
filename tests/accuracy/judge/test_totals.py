"""One number made of a tensor that is too large to be computed with as a whole is judged all the same; so is what a
gradient scaler does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from torchferry.accuracy.judge import pieces
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Judgement, Verdict

from .recorded import call_of, judge_claim, record, seeded


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that tensors of a few thousand elements are large, and can't be judged as a whole."""
    monkeypatch.setattr(pieces, "LARGE", 1 << 10)
    monkeypatch.setattr(pieces, "BLOCK", 1 << 9)
    monkeypatch.setattr(pieces, "MOST_BYTES", 1 << 15)


def a(*shape: int) -> torch.Tensor:
    with seeded():
        return torch.randn(shape) + 1.0


TOTALS: dict[str, tuple[Callable[[], Any], str]] = {
    "sum": (lambda: a(7, 30, 50).sum(), "sum"),
    "sum of bfloat16": (lambda: a(9000).bfloat16().sum(), "sum"),
    "mean": (lambda: a(100, 90).mean(), "mean"),
    "norm": (lambda: torch.linalg.vector_norm(a(9000)), "linalg_vector_norm"),
    "squared error": (lambda: functional.mse_loss(a(90, 100), a(90, 100).roll(1)), "mse_loss"),
    "largest": (lambda: a(9000).max(), "max"),
    "count": (lambda: a(9000).relu().count_nonzero(), "count_nonzero"),
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_right_total_is_normal_and_a_wrong_one_is_not(
    name: str, tmp_path: Path, small_limits: None
) -> None:
    program, operator = TOTALS[name]
    with record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, operator)
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        right = recorded.tensor(call.outputs[0])
        wrong = right + 3 if not right.is_floating_point() else right * 0.98
        judged = judge_claim(recorded, call, wrong.to(right.dtype))
        assert judged.verdict is Verdict.FAULT, judged


def test_a_sum_that_saturates_is_wrong(tmp_path: Path) -> None:
    """Adding 1 to 2^24 in single precision changes nothing: kernels that add up one by one end there."""
    with record(tmp_path / "a.h5", lambda: torch.full((6_500_000,), 4.0).sum()) as recorded:
        call = call_of(recorded, "sum")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        judged = judge_claim(recorded, call, torch.tensor(2.0**24))
        assert judged.verdict is Verdict.FAULT and judged.why is not None


def unscaled(gradients: list[torch.Tensor]) -> Callable[[], Any]:
    def program() -> None:
        found, scale = torch.zeros(1), torch.full((1,), 1 / 1024)
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, scale)

    return program


def judged_unscale(
    path: Path, gradients: list[torch.Tensor], output: str, wrong: Any
) -> tuple[Judgement, Judgement]:
    """As it is, and with another result."""
    with record(path, unscaled(gradients)) as recorded:
        call = call_of(recorded, "_amp_foreach_non_finite_check_and_unscale_")
        at = next(at for at, each in enumerate(call.outputs) if each.name == output)
        claimed = wrong(recorded.tensor(call.outputs[at]))
        return Judge(recorded, None).judge(CallPair(call, None)), judge_claim(recorded, call, claimed, at)


@pytest.mark.parametrize("is_large", [False, True])
def test_unscaling_twice(is_large: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if is_large:
        request.getfixturevalue("small_limits")
    gradients = [a(40, 50), a(3)]
    right, wrong = judged_unscale(tmp_path / "a.h5", gradients, "output/self/self_0", lambda was: was / 1024)
    assert (right.verdict, wrong.verdict) == (Verdict.NORMAL, Verdict.FAULT)


@pytest.mark.parametrize("is_large", [False, True])
def test_an_overflow_that_is_not_told(is_large: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if is_large:
        request.getfixturevalue("small_limits")
    gradients = [a(40, 50), torch.tensor([1.0, float("inf")])]
    right, wrong = judged_unscale(tmp_path / "a.h5", gradients, "output/found_inf", torch.zeros_like)
    assert (right.verdict, wrong.verdict) == (Verdict.NORMAL, Verdict.FAULT)


@pytest.mark.parametrize(("tracker", "found"), [(0, 0.0), (1999, 0.0), (5, 1.0)])
def test_the_scale_itself(tracker: int, found: float, tmp_path: Path) -> None:
    def program() -> None:
        scale, count = torch.full((1,), 65536.0), torch.full((1,), tracker, dtype=torch.int32)
        torch._amp_update_scale_(scale, count, torch.full((1,), found), 2.0, 0.5, 2000)

    with record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, "_amp_update_scale_")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, torch.full((1,), 3.0)).verdict is Verdict.FAULT
