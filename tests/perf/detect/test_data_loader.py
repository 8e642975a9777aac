"""The program waits for data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, SLOW_LOADER, real_run
from torchferry.perf.detect.data_loader import DETECTOR
from torchferry.perf.model import Severity

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SEVERAL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def steps(waiting: float, mark: str, covered: bool = False) -> TraceBuilder:
    """Two steps of 1,000 µs that begin with waiting for data."""
    built = TraceBuilder()
    for number, start in enumerate((0, 1000)):
        built.step(number, start, 1000)
        built.annotation(mark, start, waiting)
        built.op("aten::mm", start + waiting, 10)
        begin = start if covered else start + waiting
        built.kernel("gemm", begin, start + 1000 - begin, launched=start + waiting + 2)
    return built


def test_a_loader_that_keeps_up_is_fine(tmp_path: Path) -> None:
    assert not found(DETECTOR, steps(10, SEVERAL).run(tmp_path))


def test_waiting_while_the_device_computes_costs_nothing(tmp_path: Path) -> None:
    assert not found(DETECTOR, steps(400, SEVERAL, covered=True).run(tmp_path))


def test_a_slow_loader(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, steps(400, SINGLE).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.4)
    assert diagnosis.gain == pytest.approx(0.4)
    assert diagnosis.severity is Severity.HIGH
    assert "num_workers=4" in diagnosis.remedies[0].en
    assert diagnosis.evidence[0].count == 2


def test_one_with_workers_needs_more_of_them(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, steps(400, SEVERAL).run(tmp_path))
    assert "raise num_workers" in diagnosis.remedies[0].en


def test_a_real_run_without_workers() -> None:
    diagnosis = the(DETECTOR, real_run(SLOW_LOADER))
    assert f"{diagnosis.share:.1%}" == "39.6%"
    assert "39.6%" in diagnosis.summary.en and "39.6%" in diagnosis.summary.zh


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL])
def test_real_runs_that_do_not_wait(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
