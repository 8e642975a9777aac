"""Many small copies to the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, real_run
from torchferry.perf.detect.small_uploads import DETECTOR


def training(copies: int, size: int, name: str = "Memcpy HtoD (Pageable -> Device)") -> TraceBuilder:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.python("train.py(7): train", 0, 1000)
    for number in range(copies):
        start = 10 * number
        built.op("aten::to", start, 9)
        built.kernel(name, start + 3, 2, launched=start + 1, category="gpu_memcpy", bytes=size)
    return built


@pytest.mark.parametrize(
    "built",
    [
        training(2, 1024),
        training(30, 10_000_000),
        training(30, 1024, "Memcpy DtoD (Device -> Device)"),
    ],
    ids=["few", "large", "within the device"],
)
def test_other_copies(tmp_path: Path, built: TraceBuilder) -> None:
    assert not found(DETECTOR, built.run(tmp_path))


def test_many_small_ones(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(30, 1024).run(tmp_path))
    assert "30 copies per step move 1.0 KiB each" in diagnosis.summary.en
    assert diagnosis.share == pytest.approx(0.27)
    (evidence,) = diagnosis.evidence
    assert (evidence.what, evidence.place, evidence.count) == ("aten::to", "train.py:7(train)", 30)


def test_a_real_run() -> None:
    assert not found(DETECTOR, real_run(FAST_LOADER))
