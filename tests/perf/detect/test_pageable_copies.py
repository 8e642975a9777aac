"""Copies to the device that block."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, real_run
from torchferry.perf.detect.pageable_copies import DETECTOR

PINNED, PAGEABLE = "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)"


def copies(kind: str, hidden: bool = False, call: str = "") -> TraceBuilder:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.python("train.py(9): main", 0, 1000)
    built.op("aten::copy_", 10, 110)
    if call:
        built.runtime(call, 12, 100)
    built.kernel(kind, 20, 100, launched=15, category="gpu_memcpy")
    built.op("aten::mm", 130, 10)
    built.kernel("gemm", 10 if hidden else 150, 500, launched=135, stream=8)
    return built


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(copies(PINNED), id="pinned"),
        pytest.param(copies(PAGEABLE, hidden=True), id="behind computation"),
        pytest.param(copies(PINNED, call="cudaMemcpyAsync"), id="the host goes on"),
    ],
)
def test_copies_that_do_no_harm(built: TraceBuilder, tmp_path: Path) -> None:
    assert not found(DETECTOR, built.run(tmp_path))


def test_pageable(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, copies(PAGEABLE).run(tmp_path))
    assert diagnosis.gain == pytest.approx(0.1)
    assert diagnosis.evidence[0].place == "train.py:9(main)"


def test_a_call_that_waits(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, copies("MEMCPY_ASYNC", call="AscendCL@aclrtMemcpy").run(tmp_path))
    assert diagnosis.share == pytest.approx(0.1)
    assert diagnosis.evidence[0].what == "aten::copy_"


def test_real_runs() -> None:
    assert the(DETECTOR, real_run(FAST_LOADER)).gain == pytest.approx(0.0226, abs=1e-4)
    assert not found(DETECTOR, real_run(LANGUAGE_MODEL))
