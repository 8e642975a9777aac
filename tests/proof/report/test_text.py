"""The report for the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchferry.proof.model import Cause, OperatorDifference, StepSummary
from torchferry.proof.report import REPORTS
from torchferry.proof.report.comparison import ProofSteps, StepPair
from torchferry.proof.report.sentences import log_tails
from torchferry.report.formats import Options
from torchferry.text import Text

from .samples import (
    HOSTILE,
    SAMPLES,
    call,
    distributed,
    facts,
    hostile,
    long,
    operator,
    parted,
    proof,
    sample,
)


def render_text(proof: Any, language: Any = "en", **options: Any) -> str:
    return REPORTS.render(proof, "text", Options(language, **options)).decode()


def test_verdicts_come_first_one_for_each_vendor() -> None:
    lines = render_text(sample()).splitlines()
    assert lines[0] == "ascend (npu): equal bit for bit, 20 steps compared"
    assert lines[1] == "cambricon (mlu): different, 20 steps compared"
    assert lines.index("tecorigin (sdaa): failed") < next(
        at for at, line in enumerate(lines) if "Step" in line
    )


def test_where_the_runs_parted_and_the_first_operator() -> None:
    text = " ".join(render_text(sample()).split())
    assert "step 5: the gradient of layer1.0.conv1.weight differs by 0.1 (0.05 of its norm" in text
    assert (
        "aten::convolution (forward pass, layer1.0.conv1, train.py:57) is the first operator that gives another result"
        in text
    )
    assert "output 0 differs by 0.1" in text


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_cause_has_words(cause: Cause, language: str) -> None:
    result = replace(parted(), operator=operator(cause))
    text = render_text(proof(result), language)  # type: ignore[arg-type]
    assert "{" not in text
    if cause is not Cause.NONE:
        assert "aten::convolution" in text


def test_another_dtype_is_said_rather_than_a_distance() -> None:
    narrowed = OperatorDifference(
        call(outputs=(facts(dtype="float64"),)), call(outputs=(facts(),)), 0, 0.0, 0.0, Cause.RESULT
    )
    text = " ".join(render_text(proof(replace(parted(), operator=narrowed))).split())
    assert "output 0 is float32[4, 3]; in the original it is float64[4, 3]" in text
    assert "output 0 differs" not in text


def test_chinese() -> None:
    text = render_text(sample(), "zh")
    assert text.splitlines()[0] == "ascend (npu): 逐位一致，比较了 20 步"
    assert "Parameters" not in text
    joined = "".join(line.strip() for line in text.splitlines())
    assert "第 5 步：layer1.0.conv1.weight 的梯度相差 0.1" in joined
    assert "（前向，layer1.0.conv1，train.py:57）" in joined
    assert "比较范围：20 步的损失" in joined


def test_the_middle_of_a_long_table_is_left_out() -> None:
    text = render_text(long(), "en")
    assert "9988 steps not shown" in text
    assert len(text.splitlines()) < 30


def test_the_first_step_that_differs_is_never_left_out() -> None:
    def step(at: int, checksum: str) -> StepSummary:
        return StepSummary(at, 0, (1.0,), 1.0, checksum, 0)

    rows = tuple(StepPair(at, step(at, "a"), step(at, "b" if at == 50 else "a")) for at in range(1, 101))
    shown = ProofSteps(Text("", ""), False, ("SGD",), rows).shortened(ends=2)
    numbers = [each.number if isinstance(each, StepPair) else f"{each.count} left out" for each in shown]
    assert numbers == [1, 2, "45 left out", 48, 49, 50, 51, 52, "46 left out", 99, 100]


def test_each_rank_has_a_table() -> None:
    text = render_text(distributed())
    for title in ("ascend · rank 0", "ascend · rank 1", "cambricon · rank 0", "cambricon · rank 1"):
        assert f"\n{title}\n" in text
    assert "rank 1, step 5: the gradient" in text


def test_hostile_text_does_not_reach_the_terminal() -> None:
    text = render_text(hostile(), logs={HOSTILE: HOSTILE})
    assert "\x1b" not in text and "\u202e" not in text
    text.encode()  # no surrogates


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 200])
def test_everything_renders(name: str, language: str, width: int) -> None:
    assert render_text(SAMPLES[name](), language, width=width, terminal=True).strip()  # type: ignore[arg-type]


def test_last_words_of_failed_runs(tmp_path: Path) -> None:
    """Of those only: the equal run also wrote to stderr."""
    for name in ("ascend", "tecorigin"):
        (tmp_path / f"{name}.stderr").write_text(
            "before\nTraceback (most recent call last):\nValueError: boom\n"
        )
    tails = log_tails(sample(), tmp_path)
    assert list(tails) == ["tecorigin"]
    assert "ValueError: boom" in render_text(sample(), logs=tails)
