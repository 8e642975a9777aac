"""What holds for every detector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED
from torchferry.perf.detect.model import Detector
from torchferry.perf.detect.registry import DETECTORS
from torchferry.perf.run import Run


def only_operators() -> TraceBuilder:
    built = TraceBuilder()
    built.op("aten::item", 0, 10)
    return built


def only_kernels() -> TraceBuilder:
    built = TraceBuilder()
    built.kernel("gemm", 10, 10, launched=0)
    built.runtime("cudaDeviceSynchronize", 30, 10)
    return built


def only_python() -> TraceBuilder:
    built = TraceBuilder()
    built.python("train.py(1): main", 0, 100)
    return built


def empty_step() -> TraceBuilder:
    built = TraceBuilder()
    built.step(1, 0, 0)
    built.op("aten::mm", 0, 0, dims=[], types=[])
    return built


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.id)
@pytest.mark.parametrize("make", [only_operators, only_kernels, only_python, empty_step])
@pytest.mark.parametrize("profile", [{}, SIMULATED], ids=["any", "simulated"])
def test_traces_that_hold_next_to_nothing(
    tmp_path: Path, detector: Detector, make: Callable[[], TraceBuilder], profile: dict[str, object]
) -> None:
    run = make().run(tmp_path, profile=profile)
    if detector.lacks(run) is None:
        for diagnosis in detector.detect(run):
            assert 0 <= diagnosis.share <= 1


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.id)
def test_a_run_that_holds_nothing_is_said_to_lack_something(detector: Detector) -> None:
    assert detector.lacks(Run(("nothing",))) is not None


def test_each_has_its_own_id() -> None:
    assert len({detector.id for detector in DETECTORS}) == len(DETECTORS)
