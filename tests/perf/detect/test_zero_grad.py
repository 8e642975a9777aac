"""Gradients that are filled with zeros."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import SLOW_LOADER, real_run
from torchferry.perf.detect.zero_grad import DETECTOR


def training(fills: bool) -> TraceBuilder:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.annotation("Optimizer.zero_grad#SGD.zero_grad", 0, 100 if fills else 2)
    for number in range(10 if fills else 0):
        built.op("aten::zero_", 10 * number, 9)
    built.op("aten::zero_", 200, 50)  # the program's own
    return built


def test_dropping_them(tmp_path: Path) -> None:
    assert not found(DETECTOR, training(fills=False).run(tmp_path))


def test_filling_them(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(fills=True).run(tmp_path))
    assert "in 10 calls per step, 10.0% of the time" in diagnosis.summary.en
    assert diagnosis.gain == pytest.approx(0.1)
    assert "set_to_none=True" in diagnosis.remedies[0].en


def test_filling_that_takes_nothing(tmp_path: Path) -> None:
    built = training(fills=True)
    built.step(2, 1000, 50_000)
    assert not found(DETECTOR, built.run(tmp_path))


def test_a_real_run_of_2021() -> None:
    assert "in 161 calls per step" in the(DETECTOR, real_run(SLOW_LOADER)).summary.en
