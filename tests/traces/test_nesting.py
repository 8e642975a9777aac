"""Callers and what they call, told from times alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.perf.building import BACKWARD, TraceBuilder
from torchferry.traces.model import Trace


def _traced(folder: Path) -> Trace:
    built = TraceBuilder()
    built.step(1, 0, 100)
    built.op("aten::linear", 10, 50)
    built.op("aten::t", 12, 8)
    built.op("aten::addmm", 20, 40)
    built.op("aten::relu", 60, 10)  # begins when linear ends
    built.op("aten::mm", 15, 10, thread=BACKWARD)  # at the same time, in another thread
    return built.trace(folder)


def _callers(trace: Trace) -> dict[str, str]:
    names = [trace.names[number] for number in trace.host.name.tolist()]
    return {
        name: names[parent] if parent >= 0 else ""
        for name, parent in zip(names, trace.parent.tolist(), strict=True)
    }


def test_callers_are_found_within_each_thread(tmp_path: Path) -> None:
    assert _callers(_traced(tmp_path)) == {
        "ProfilerStep#1": "",
        "aten::linear": "ProfilerStep#1",
        "aten::t": "aten::linear",
        "aten::addmm": "aten::linear",
        "aten::relu": "ProfilerStep#1",
        "aten::mm": "",
    }


def test_own_time_leaves_out_what_was_called(tmp_path: Path) -> None:
    trace = _traced(tmp_path)

    linear = trace.host_rows("aten::linear")

    assert trace.host.duration[linear].tolist() == [50_000]
    assert trace.own_time[linear].tolist() == [2_000]


def test_the_innermost_at_a_moment(tmp_path: Path) -> None:
    trace = _traced(tmp_path)
    main = trace.host.thread[trace.host_rows("aten::linear")][0]

    def at(microseconds: int) -> str:
        row = trace.host_calls.enclosing(np.array([main]), np.array([microseconds * 1000]))[0]
        return trace.names[trace.host.name[row]] if row >= 0 else ""

    assert [at(5), at(11), at(15), at(30), at(65), at(99), at(500)] == [
        "ProfilerStep#1",
        "aten::linear",
        "aten::t",
        "aten::addmm",
        "aten::relu",
        "ProfilerStep#1",
        "",
    ]


def test_work_of_the_device_belongs_to_the_innermost_operator(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.op("aten::linear", 10, 50)
    built.op("aten::addmm", 20, 30)
    built.kernel("gemm", 100, 40, launched=25)
    built.kernel("unknown", 150, 5, launched=500)

    trace = built.trace(tmp_path)

    owners = [trace.names[trace.host.name[row]] if row >= 0 else "" for row in trace.owner.tolist()]
    assert owners == ["aten::addmm", ""]
    assert trace.device_time[trace.host_rows("aten::addmm")].tolist() == [40_000]
