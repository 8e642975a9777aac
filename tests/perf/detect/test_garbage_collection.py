"""Pauses of Python's garbage collector."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from torchferry.perf.detect import host_bound
from torchferry.perf.detect.garbage_collection import DETECTOR


def training(pause: float) -> TraceBuilder:
    built = TraceBuilder()
    for start in (0, 1000):
        built.step(start // 1000, start, 1000)
        built.op("aten::mm", start, 500)
        if pause:
            built.annotation("torchferry::gc generation 2", start + 600, pause)
    return built


@pytest.mark.parametrize("pause", [0, 5])
def test_no_pause_or_short_ones(tmp_path: Path, pause: float) -> None:
    assert not found(DETECTOR, training(pause).run(tmp_path, profile=SIMULATED))


def test_long_pauses(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(150).run(tmp_path))
    assert diagnosis.gain == pytest.approx(0.15)
    assert "1.0 times per step" in diagnosis.summary.en
    assert diagnosis.evidence[0].what == "torchferry::gc generation 2"
    assert "gc.freeze()" in diagnosis.remedies[0].en


def test_pauses_are_not_the_programs_python(tmp_path: Path) -> None:
    built = training(350)
    built.python("train.py(3): main", 0, 2000)
    built.op("aten::mm", 500, 100)
    built.op("aten::mm", 1500, 100)
    assert not found(host_bound.DETECTOR, built.run(tmp_path))


def test_profiles_of_others_do_not_show_them(tmp_path: Path) -> None:
    lacking = DETECTOR.lacks(training(0).run(tmp_path))
    assert lacking is not None and "ferry profile" in lacking.en
