"""Memory that is asked for in every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.allocation import DETECTOR


def training(*asking: int, call: str = "cudaMalloc") -> TraceBuilder:
    """Four steps of 1,000 µs; in some of them memory is asked for and given back."""
    built = TraceBuilder()
    for number in range(4):
        start = number * 1000
        built.step(number, start, 1000)
        built.op("aten::mm", start, 500)
        built.kernel("gemm", start + 20, 900, launched=start + 10)
        if number in asking:
            built.runtime(call, start + 30, 100)
            built.runtime("cudaFree", start + 200, 100)
    return built


def test_an_allocator_that_has_settled(tmp_path: Path) -> None:
    assert not found(DETECTOR, training().run(tmp_path))


def test_the_first_step_may(tmp_path: Path) -> None:
    assert not found(DETECTOR, training(0).run(tmp_path))


def test_every_step(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(0, 1, 2, 3).run(tmp_path))
    assert "2.0 times per step" in diagnosis.summary.en
    assert diagnosis.share == pytest.approx(600 / 4000)
    assert {(each.what, each.count) for each in diagnosis.evidence} == {("cudaMalloc", 3), ("cudaFree", 3)}


@pytest.mark.parametrize(
    "call", ["hipMalloc", "AscendCL@aclrtMalloc", "cuMemCreate", "musaMalloc", "cnrtMalloc"]
)
def test_other_libraries(tmp_path: Path, call: str) -> None:
    evidence = the(DETECTOR, training(1, 2, 3, call=call).run(tmp_path)).evidence
    assert call in {each.what for each in evidence}


def test_pinning_in_the_loop(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(1, 2, 3, call="cudaHostAlloc").run(tmp_path))
    assert "pin it once" in diagnosis.remedies[0].en


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE])
def test_real_runs(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
