"""What an analysis calls things: copies, devices and bottlenecks are what they are said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from torchferry.perf import opening
from torchferry.perf.analysis import analyze
from torchferry.perf.model import Analysis, Diagnosis, TimePart
from torchferry.perf.opening import open_runs
from torchferry.perf.report import sentences
from torchferry.text import Text
from torchferry.traces import names
from torchferry.traces.columns import EventKind
from torchferry.vendors.model import Vendor

STATISTIC = (
    "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
    "0,PTCopy,AI_CPU,120,7100,10,59,90,71\n0,TransData,AI_CORE,60,2600,10,43,60,26\n0,Conv2D,AI_CORE,6,300,40,50,60,3\n"
)


def device_trace(copy: str, category: str = "gpu_memcpy") -> TraceBuilder:
    built = TraceBuilder()
    for number in range(3):
        start = number * 1000
        built.step(number, start, 1000)
        built.op("aten::copy_", start, 20)
        built.kernel("gemm", start + 10, 600, start + 2)
        built.kernel(copy, start + 620, 200, start + 4, category=category)
    return built


@pytest.mark.parametrize(
    ("name", "category", "kind", "part"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", EventKind.COPY, TimePart.COPY),
        ("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy", EventKind.COPY, TimePart.COPY),
        ("Memcpy DtoD (Device -> Device)", "gpu_memcpy", EventKind.MOVE, TimePart.MOVE),
        ("Memcpy PtoP", "gpu_memcpy", EventKind.MOVE, TimePart.MOVE),
        ("CopyDeviceToDevice", "gpu_memcpy", EventKind.MOVE, TimePart.MOVE),
        ("Memset (Device)", "gpu_memset", EventKind.FILL, TimePart.MOVE),
    ],
)
def test_only_copies_to_and_from_the_host_are_called_so(
    name: str, category: str, kind: EventKind, part: TimePart, tmp_path: Path
) -> None:
    run = device_trace(name, category).run(tmp_path)
    assert run.trace is not None and kind in run.trace.device.kind
    shares = {each: moments.total / run.trace.window.total for each, moments in run.parts.items()}
    assert shares[part] == pytest.approx(0.2, abs=0.001)
    assert shares[TimePart.MOVE if part is TimePart.COPY else TimePart.COPY] == 0


def other_device(category: str, runtime: str = "mtia_runtime") -> TraceBuilder:
    """Work of a device that no vendor here is."""
    built = device_trace("x")
    for event in built.events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["cat"] = category
        if event.get("cat") == "cuda_runtime":
            event["cat"] = runtime
    return built


def test_work_of_an_unknown_device_is_work(tmp_path: Path) -> None:
    run = other_device("mtia_ccp_events").run(tmp_path)
    assert run.trace is not None and not run.trace.is_host_only
    assert run.device == "mtia" and (run.trace.owner >= 0).all()
    assert run.parts[TimePart.COMPUTE].total == 3 * 800_000


def test_an_unknown_category_is_work_by_its_process_s_label(tmp_path: Path) -> None:
    built = other_device("acme_thing")
    label = {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "ACME 0"}}
    labelled = TraceBuilder([*built.events, label]).run(tmp_path)
    assert labelled.trace is not None and not labelled.trace.is_host_only
    (tmp_path / "other").mkdir()
    unlabelled = built.run(tmp_path / "other")
    said = " ".join(note.en for note in analyze(unlabelled).notes)
    assert "acme_thing" in said and "no work of the device" in said


def test_categories_that_are_no_work_stay_so(tmp_path: Path) -> None:
    built = device_trace("Memset (Device)", "gpu_memset")
    for event in [*built.events]:
        if event.get("cat") == "kernel":
            built.events.append({**event, "cat": "gpu_user_annotation", "name": "step"})
            built.events.append({**event, "cat": "cuda_sync", "name": "Stream Sync"})
    run = built.run(tmp_path)
    assert run.trace is not None and len(run.trace.device) == 6 and not run.trace.notes


def test_a_simulated_device_is_called_one_and_its_own_calls_are_left_out(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::mm", 0, 500)
    built.op("torchferry_sim::begin_use", 600, 100)
    analysis = analyze(built.run(tmp_path))
    assert analysis.simulated and [row.operator for row in analysis.operators] == ["aten::mm"]
    assert "simulated device" in sentences.device(analysis).en


def test_tensors_of_a_plugin_are_not_the_cpus(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::mm", 0, 500)
    built.memory(10, 64, 64, 128, device_type=0)
    built.memory(20, 64, 64, 128, device_type=20)
    analysis = analyze(built.run(tmp_path))
    assert analysis.device == "privateuse1" and set(analysis.memory) == {"cpu", "privateuse1:0"}


def test_a_table_of_statistics_names_its_bottlenecks(tmp_path: Path) -> None:
    (tmp_path / "op_statistic_0_1.csv").write_text(STATISTIC)
    (run,) = open_runs([tmp_path / "op_statistic_0_1.csv"])
    analysis = analyze(run)
    found = {each.id: each for each in analysis.diagnoses}
    assert {"ai_cpu", "device_copies", "format_conversion"} <= found.keys()
    assert found["ai_cpu"].share == pytest.approx(0.71) and found["ai_cpu"].evidence[0].count == 120
    assert found["format_conversion"].share == pytest.approx(0.26)
    assert "cast_weights(model)" in found["format_conversion"].remedies[0].en
    assert sentences.verdict(analysis)[0].en.startswith("Bottleneck: ")
    first = analysis.operators[0]
    assert (first.operator, first.calls) == ("PTCopy", 120)


def found_with(share: float) -> Analysis:
    title = Text("The program waits for data", "程序在等待数据")
    diagnosis = Diagnosis("data_loader", title, Text("s", "s"), share, (Text("r", "r"),), gain=share)
    parts = {TimePart.COMPUTE: 1.0 - share, TimePart.LOADER: share}
    return Analysis(("x",), "cpu", seconds=1.0, parts=parts, diagnoses=(diagnosis,), is_host_only=True)


def test_an_eighth_of_the_time_is_no_bottleneck() -> None:
    said = [text.en for text in sentences.verdict(found_with(0.128))]
    assert said[:2] == [
        "Largest finding: the program waits for data, 12.8% of the time.",
        "The largest part of a step: operators (87.2%).",
    ]


def test_four_tenths_are_one() -> None:
    assert sentences.verdict(found_with(0.4))[0].en == "Bottleneck: the program waits for data."


def test_a_trace_of_the_cpu_or_of_cuda_reads_no_vendors_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would take longer than to read a small trace."""

    def refuse(_name: str) -> Vendor:
        raise AssertionError("a vendor's data are read")

    for cached in (names.flow_device, names.launching_device, names._device_types):
        cached.cache_clear()
    for function in ("get_vendor", "vendor_of_device"):
        monkeypatch.setattr(opening, function, refuse)
    monkeypatch.setattr(names, "get_vendor", refuse)
    path = device_trace("Memset (Device)", "gpu_memset").write(tmp_path / "trace.json")
    (run,) = open_runs([path])
    assert run.device == "cuda" and run.vendor is None
