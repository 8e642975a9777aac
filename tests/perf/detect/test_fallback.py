"""Operators that are computed on the host because the device lacks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.fallback import DETECTOR
from torchferry.perf.model import Impact
from torchferry.perf.run import Run
from torchferry.vendors.registry import get_vendor


def marked(operator: str) -> TraceBuilder:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.python("train.py(6): loss", 0, 1000)
    built.op(operator, 100, 300, dims=[[4, 4]], types=["float"])
    built.annotation(f"torchferry::fallback {operator}", 110, 280)
    built.op("aten::mm", 500, 300)
    return built


def test_a_step_without(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::mm", 0, 900, dims=[[4, 4], [4, 4]], types=["float", "float"])
    assert not found(DETECTOR, built.run(tmp_path, profile=SIMULATED, rank_facts={"fallbacks": {}}))


def test_marked_by_the_collector(tmp_path: Path) -> None:
    run = marked("aten::logcumsumexp").run(tmp_path, profile=SIMULATED, vendor=get_vendor("ascend"))
    diagnosis = the(DETECTOR, run)
    assert diagnosis.share == pytest.approx(0.28)
    assert diagnosis.severity is Impact.HIGH
    (evidence,) = diagnosis.evidence
    assert (evidence.what, evidence.place, evidence.detail) == (
        "aten::logcumsumexp",
        "train.py:6(loss)",
        "4×4; float32",
    )
    assert any("--to ascend" in remedy.en for remedy in diagnosis.remedies)


def test_vendor_data_has_a_replacement(tmp_path: Path) -> None:
    run = marked("aten::_logcumsumexp").run(tmp_path, vendor=get_vendor("ascend"))
    assert (
        the(DETECTOR, run)
        .remedies[0]
        .en.startswith("aten::_logcumsumexp: Write torch.logcumsumexp with other operators")
    )


def test_counted_but_not_in_the_steps_of_the_trace() -> None:
    diagnosis = the(DETECTOR, Run(("run.json",), rank_facts={"fallbacks": {"aten::a": 3, "aten::b": 40}}))
    assert [evidence.what for evidence in diagnosis.evidence] == ["aten::b", "aten::a"]
    assert diagnosis.summary.en.startswith("In this run, 43 calls of 2 operators")
    assert diagnosis.severity is Impact.LOW


def round_trip(computes: bool, back: bool) -> TraceBuilder:
    """An operator that copies its input to the host, and perhaps its result to the device."""
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::unique", 0, 400)
    built.op("aten::copy_", 10, 50)
    built.kernel("Memcpy DtoH (Device -> Pageable)", 20, 30, launched=15, category="gpu_memcpy")
    if computes:
        built.op("aten::sort", 100, 20)
        built.kernel("sort", 110, 100, launched=105)
    if back:
        built.op("aten::copy_", 300, 50)
        built.kernel("Memcpy HtoD (Pageable -> Device)", 310, 30, launched=305, category="gpu_memcpy")
    return built


@pytest.mark.parametrize(("computes", "back"), [(True, True), (False, False)])
def test_an_operator_that_only_reads_a_size(computes: bool, back: bool, tmp_path: Path) -> None:
    assert not found(DETECTOR, round_trip(computes, back).run(tmp_path))


def test_an_operator_that_goes_to_the_host_and_back(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, round_trip(computes=False, back=True).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.4)
    assert diagnosis.evidence[0].what == "aten::unique"


def test_the_way_of_pytorch(tmp_path: Path) -> None:
    for name, expected in (("aten::to", 0), ("aten::_to_cpu", 1)):
        built = TraceBuilder()
        built.step(0, 0, 1000)
        built.op("aten::unique_dim", 0, 400)
        built.op(name, 10, 50)
        assert len(found(DETECTOR, built.run(tmp_path))) == expected


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE])
def test_real_runs_without(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
