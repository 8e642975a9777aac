"""Memory that is nearly full."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import LANGUAGE_MODEL, real_run
from torchferry.perf.detect.memory_limit import DETECTOR

GIB = 2**30


def training(peak: float, limit: int = 16 * GIB) -> TraceBuilder:
    built = TraceBuilder(about={"deviceProperties": [{"id": 0, "totalGlobalMem": limit}] if limit else []})
    built.step(1, 0, 1000)
    built.python("model.py(5): forward", 0, 1000)
    built.op("aten::conv2d", 400, 200)
    built.op("aten::empty", 450, 10)
    for start, allocated in ((100, GIB), (455, int(peak * GIB)), (900, GIB)):
        built.memory(start, GIB, allocated=allocated, reserved=16 * GIB)
    return built


def test_room_enough_though_the_allocator_holds_all(tmp_path: Path) -> None:
    assert not found(DETECTOR, training(peak=8).run(tmp_path))


def test_nearly_full(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(peak=15).run(tmp_path))
    assert "15.0 GiB of 16.0 GiB (94%)" in diagnosis.summary.en
    (evidence,) = diagnosis.evidence
    assert (evidence.what, evidence.place) == ("aten::conv2d", "model.py:5(forward)")
    assert evidence.example == pytest.approx(455e-6)


def test_the_facts_of_our_own_profiles(tmp_path: Path) -> None:
    facts = {"memory_limit": 32 * GIB, "memory_peak": 31 * GIB}
    assert (
        "31.0 GiB of 32.0 GiB" in the(DETECTOR, training(peak=1).run(tmp_path, rank_facts=facts)).summary.en
    )


def test_without_a_limit_nothing_can_be_said(tmp_path: Path) -> None:
    assert DETECTOR.lacks(training(peak=15, limit=0).run(tmp_path)) is not None


def test_a_real_run() -> None:
    assert not found(DETECTOR, real_run(LANGUAGE_MODEL))
