"""Operators on the device's own slow processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, KERNEL_TABLE, VENDORS_TIMELINE, real_run, real_trace
from torchferry.perf.detect.ai_cpu import DETECTOR
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import read_kernels


def step_on(core: str) -> TraceBuilder:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::sum", 0, 10, dims=[[8]], types=["long int"])
    built.kernel("ReduceSum", 100, 200, launched=5, **{"Task Type": core})
    return built


def test_on_the_fast_cores(tmp_path: Path) -> None:
    assert not found(DETECTOR, step_on("AI_VECTOR_CORE").run(tmp_path))


def test_on_the_slow_one(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step_on("AI_CPU").run(tmp_path))
    assert diagnosis.share == pytest.approx(0.2)
    assert diagnosis.evidence[0].detail == "aten::sum; (8,); int64"


def test_in_a_table_of_kernels(tmp_path: Path) -> None:
    table = tmp_path / "kernel_details.csv"
    rows = ["a,Cast,{},0,100,0", "b,MatMulV2,AI_CORE,100,900,0"]
    for core, expected in (("AI_VECTOR_CORE", 0), ("AI_CPU", 1)):
        head = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
        table.write_text(head + "\n".join(rows).format(core) + "\n")
        diagnoses = found(DETECTOR, Run(("kernel_details.csv",), kernels=read_kernels(table)))
        assert [round(each.share, 3) for each in diagnoses] == [0.1] * expected


def test_real_runs() -> None:
    assert the(DETECTOR, real_run(VENDORS_TIMELINE)).share == pytest.approx(0.0232, abs=1e-4)
    assert not found(DETECTOR, real_run(FAST_LOADER))
    assert not found(DETECTOR, Run(("table",), kernels=read_kernels(real_trace(KERNEL_TABLE))))
