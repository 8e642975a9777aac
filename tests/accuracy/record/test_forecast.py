"""What is said of a record that there is no room for, before it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.accuracy.record.forecast import Forecast

GIB = 1 << 30
FILE = Path("gpu.h5")


def said(
    capsys: pytest.CaptureFixture[str], steps: int | None, sizes: list[int], most: int, half: int = 0
) -> str:
    """On a record of so many steps whose file has these sizes after each."""
    forecast = Forecast(FILE, steps)
    forecast.forward_ended(half, most)
    for size in sizes:
        forecast.step_ended(size, most)
    return capsys.readouterr().err


def test_nothing_where_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, 10, [GIB, 2 * GIB, 3 * GIB], 10 * GIB, GIB // 2) == ""
    assert said(capsys, None, [GIB // 1000], 10 * GIB) == ""


def test_after_the_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, 100, [GIB, 2 * GIB], 50 * GIB) == (
        "torchferry: gpu.h5: a step takes 1.0 GiB, so 100 steps take 100.0 GiB; the recording is limited to 50.0 GiB and ends "
        "after about 50 steps. Use --modules-only, --in-module, --op, --slice or --every to record less\n"
    )
    assert "ends after about 50 steps" in said(capsys, None, [GIB], 50 * GIB)


def test_as_soon_as_a_later_step_takes_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert "a step takes 9.0 GiB, so 5 steps take 37.0 GiB" in said(capsys, 5, [GIB, 10 * GIB], 20 * GIB)


def test_within_the_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, 1, [], 10 * GIB, half=6 * GIB)
    assert "the forward pass takes 6.0 GiB" in found and "ends within this step" in found


def test_in_chinese(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "zh")
    assert "约 50 步后结束" in said(capsys, 100, [GIB], 50 * GIB)
