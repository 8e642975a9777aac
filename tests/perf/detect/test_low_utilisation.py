"""Work that is too small for the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, SLOW_LOADER, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.low_utilisation import DETECTOR


def step(kernel: float, waits_for_data: bool = False) -> TraceBuilder:
    """Ten layers, called every 100 µs."""
    built = TraceBuilder(about={"deviceProperties": [{"id": 0, "totalGlobalMem": 1000}]})
    built.step(1, 0, 1000)
    for start in range(0, 1000, 100):
        built.op("aten::linear", start, 90, dims=[[4, 16], [16, 16]], types=["float", "float"])
        built.kernel("gemm", start + 20, kernel, launched=start + 10)
    built.memory(500, 100, allocated=100, reserved=200)
    if waits_for_data:
        built.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 400)
    return built


def test_kernels_that_fill_the_time(tmp_path: Path) -> None:
    assert not found(DETECTOR, step(kernel=80).run(tmp_path))


def test_few_but_long_kernels(tmp_path: Path) -> None:
    assert not found(DETECTOR, step(kernel=30).run(tmp_path))


def test_short_kernels(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step(kernel=5).run(tmp_path))
    assert "computes for 5.0% of the time, and 100% of its kernels" in diagnosis.summary.en
    assert diagnosis.gain == pytest.approx(0.475)
    assert [remedy.en for remedy in diagnosis.remedies] == [
        "Raise the batch size (apparently 4 now), and adjust the learning rate.",
        "Memory allows it: 10% of the device's memory is in use.",
    ]


def test_a_slow_loader_is_another_reason(tmp_path: Path) -> None:
    assert not found(DETECTOR, step(kernel=5, waits_for_data=True).run(tmp_path))


@pytest.mark.parametrize("name", [SLOW_LOADER, FAST_LOADER, LANGUAGE_MODEL])
def test_real_runs_with_work_enough(name: str) -> None:
    assert not found(DETECTOR, real_run(name))


def test_a_real_run_of_a_tiny_model() -> None:
    assert "11.6%" in the(DETECTOR, real_run(VENDORS_TIMELINE)).summary.en
