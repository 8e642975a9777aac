"""Compiles after the warm-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.recompiles import DETECTOR
from torchferry.perf.oplog.model import Basis, Compile, LoggedProcess, Operator, OpLog
from torchferry.perf.run import Run
from torchferry.text import Text

COMPILE = "AscendCL@opCompile"
EXECUTE = "AscendCL@aclopCompileAndExecuteV2"


def steps(first: int, **calls: list[float]) -> TraceBuilder:
    """Steps of 100 ms from a number on; calls of the runtime by name: their milliseconds in each step."""
    built = TraceBuilder()
    for number in range(3):
        start = number * 100_000
        built.step(first + number, start, 100_000)
        built.op("aten::mm", start, 90_000)
        for name, times in calls.items():
            if times[number]:
                built.runtime(
                    {"compile": COMPILE, "execute": EXECUTE}[name], start + 10, times[number] * 1000
                )
    return built


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(steps(1, compile=[50, 0, 0]), id="in the first step"),
        pytest.param(steps(7, execute=[0.02, 0.03, 0.02]), id="calls that find the operator compiled"),
        pytest.param(steps(7), id="none"),
    ],
)
def test_no_recompiles(built: TraceBuilder, tmp_path: Path) -> None:
    assert not found(DETECTOR, built.run(tmp_path))


@pytest.mark.parametrize(
    ("built", "share"),
    [
        pytest.param(steps(1, compile=[50, 30, 30]), 0.2, id="in later steps"),
        pytest.param(
            steps(7, compile=[30, 0, 0]), 0.1, id="in the first of the trace, when others came before"
        ),
        pytest.param(
            steps(7, execute=[0.02, 30, 0.02]), 0.1, id="a call that takes a thousand times as long"
        ),
    ],
)
def test_recompiles(built: TraceBuilder, share: float, tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, built.run(tmp_path))
    assert diagnosis.gain == pytest.approx(share)


def test_what_torch_compile_writes_counts_once(tmp_path: Path) -> None:
    built = steps(5)
    built.python("train.py(8): train", 100_000, 90_000)
    built.annotation("_compile.compile_inner (dynamo_timed)", 110_000, 30_000)
    built.annotation("OutputGraph.call_user_compiler (dynamo_timed)", 111_000, 20_000)
    built.python("torch/_inductor/compile_fx.py(2000): compile_fx", 112_000, 9_000)
    diagnosis = the(DETECTOR, built.run(tmp_path))
    assert diagnosis.summary.en.startswith("1 compiles")
    assert diagnosis.gain == pytest.approx(0.1)
    assert diagnosis.evidence[0].place == "train.py:8(train)"


def log(recompiles: int) -> OpLog:
    compile_ = Compile("Conv2D", 1, 50, 80.0, 2.0, None)
    return OpLog(
        ("plog",), "acme",
        (Operator("Conv2D", 100, 1 + recompiles, 2.0 * (1 + recompiles), recompiles, 0, ()),),
        (compile_,) * recompiles,
        Basis.HALF, Text("", ""), 1 + recompiles, 2.0 * (1 + recompiles), (LoggedProcess(1, 100, 0.0, 100.0),), 1000,
    )  # fmt: skip


def test_by_the_log_of_the_host() -> None:
    assert not found(DETECTOR, Run(("plog",), oplog=log(0)))
    diagnosis = the(DETECTOR, Run(("plog",), oplog=log(5)))
    assert diagnosis.gain == pytest.approx(0.1)
    (evidence,) = diagnosis.evidence
    assert (evidence.what, evidence.count, evidence.seconds) == ("Conv2D", 5, pytest.approx(10.0))


@pytest.mark.parametrize("name", [FAST_LOADER, VENDORS_TIMELINE])
def test_real_runs_without(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
