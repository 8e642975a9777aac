"""Autograd's own search for NaN."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import BACKWARD, TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from torchferry.perf.detect import synchronization
from torchferry.perf.detect.anomaly_detection import DETECTOR


def backward(checked: int) -> TraceBuilder:
    """Ten functions of autograd; some results are checked."""
    built = TraceBuilder()
    built.step(1, 0, 1000)
    for number in range(10):
        start = 100 * number
        built.op("autograd::engine::evaluate_function: MmBackward0", start, 90, thread=BACKWARD)
        built.op("MmBackward0", start + 1, 50, thread=BACKWARD)
        built.op(
            "aten::isnan", start + 5, 3, thread=BACKWARD
        )  # a function of the program's that looks for NaN
        if number < checked:
            built.op("aten::isnan", start + 55, 10, thread=BACKWARD)
            built.op("aten::_is_any_true", start + 66, 10, thread=BACKWARD)
            built.op("aten::item", start + 77, 10, thread=BACKWARD)
            built.op("aten::_local_scalar_dense", start + 78, 5, thread=BACKWARD)
    return built


@pytest.mark.parametrize("checked", [0, 1])
def test_off(tmp_path: Path, checked: int) -> None:
    assert not found(DETECTOR, backward(checked).run(tmp_path))


def test_on(tmp_path: Path) -> None:
    run = backward(10).run(tmp_path, profile=SIMULATED)
    diagnosis = the(DETECTOR, run)
    assert diagnosis.gain == pytest.approx(0.3)
    assert "10 functions" in diagnosis.summary.en
    assert not found(synchronization.DETECTOR, run)  # its reading is said once
