"""A scale that is taken a little wrongly: in few digits no element shows it, all of them do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from torchferry.accuracy.judge.model import ErrorKind, Judgement, Verdict

from .recorded import call_of, judge_claim, record, seeded

OPERATOR = "_scaled_dot_product_flash_attention_for_cpu"
RIGHT = 0.25


def judged(
    folder: Path,
    factor: float,
    dtype: torch.dtype = torch.bfloat16,
    scale: float | None = RIGHT,
    noise: float = 0.0,
) -> Judgement:
    """Of attention whose kernel has multiplied by another number."""
    with seeded():
        query, key, value = (torch.randn(2, 3, 20, 16).to(dtype) for _ in range(3))
        errors = torch.randn(2, 3, 20, 16).double()
    weights = query.double() @ key.double().transpose(-1, -2) * RIGHT * factor
    result = weights.softmax(-1) @ value.double()
    result = (result + noise * result.abs() * errors).to(dtype)

    def program() -> None:
        functional.scaled_dot_product_attention(query, key, value, scale=scale)

    with record(folder / "a.h5", program) as recorded:
        return judge_claim(recorded, call_of(recorded, OPERATOR), result)


@pytest.mark.parametrize(
    ("factor", "options"),
    [
        pytest.param(1.0, {}, id="right"),
        pytest.param(1.002, {}, id="a scale that is rounded to the dtype"),
        pytest.param(1.0, {"noise": 0.003}, id="errors that go any way"),
        pytest.param(1.0, {"dtype": torch.float16}, id="float16"),
        pytest.param(1.0, {"scale": None}, id="by default"),
    ],
)
def test_normal(factor: float, options: dict[str, object], tmp_path: Path) -> None:
    assert judged(tmp_path, factor, **options).verdict is Verdict.NORMAL  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("factor", "options"),
    [
        pytest.param(1.006, {}, id="too much"),
        pytest.param(0.994, {}, id="too little"),
        pytest.param(1.006, {"scale": None}, id="by default"),
        pytest.param(1.0008, {"dtype": torch.float16}, id="float16"),
    ],
)
def test_leaning(factor: float, options: dict[str, object], tmp_path: Path) -> None:
    found = judged(tmp_path, factor, **options)  # type: ignore[arg-type]
    assert (found.verdict, found.sort) == (Verdict.SUSPICIOUS, ErrorKind.MISREAD)
    assert found.why is not None and "look as if scale were" in found.why.en
    seen = float(found.why.en.rpartition("were ")[2].partition(",")[0])
    assert seen == pytest.approx(RIGHT * factor, rel=abs(factor - 1) / 2)
