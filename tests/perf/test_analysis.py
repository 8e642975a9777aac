"""From a trace to an analysis: steps, parts, tables, timeline, memory; detectors that break down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.perf.building import BACKWARD, TraceBuilder
from tests.perf.real_traces import KERNEL_TABLE, SLOW_LOADER, real_run, real_trace
from torchferry.perf.analysis import MOST_POINTS, analyze, memory_curve
from torchferry.perf.detect import registry
from torchferry.perf.detect.model import NO_TRACE, Detector
from torchferry.perf.model import Diagnosis, Evidence, Impact, KernelRow, TimePart
from torchferry.perf.opening import open_runs
from torchferry.perf.run import Run
from torchferry.perf.timeline import HOST
from torchferry.text import Text
from torchferry.traces.model import DeviceMemoryEvents

FLOATS = {"dims": [[4, 8], [8, 2]], "types": ["float", "float"]}


def two_steps() -> TraceBuilder:
    """Of 100 and 300 µs: an operator launches a kernel in each, which the second time takes three times as long."""
    builder = TraceBuilder()
    for number, start, long in ((5, 1000.0, 100.0), (6, 1100.0, 300.0)):
        builder.step(number, start, long)
        builder.op("aten::linear", start + 10, 40, dims=[[4, 8]], types=["float"])
        builder.op("aten::mm", start + 20, 20, strides=[[8, 1], [2, 1]], **FLOATS)
        builder.kernel("gemm", start + 30, long / 2, launched=start + 25)
    builder.op("aten::mm", 1060, 10, strides=[[1, 4], [2, 1]], **FLOATS)
    builder.op("aten::mm", 1500, 10, **FLOATS)  # after the steps
    return builder


def test_where_the_time_of_a_step_goes(tmp_path: Path) -> None:
    found = analyze(two_steps().run(tmp_path))
    assert [step.number for step in found.steps] == [5, 6]
    assert [round(step.seconds * 1e6) for step in found.steps] == [100, 300]
    assert [round(step.parts[TimePart.COMPUTE] * 1e6) for step in found.steps] == [50, 150]
    for step in found.steps:
        assert sum(step.parts.values()) == pytest.approx(step.seconds)
    assert found.seconds == pytest.approx(400e-6) and found.share(TimePart.COMPUTE) == pytest.approx(0.5)
    assert sum(found.parts.values()) == pytest.approx(found.seconds)


def test_operators_by_shapes_and_types(tmp_path: Path) -> None:
    """Strides do not divide calls, shapes do; calls outside of the steps do not count."""
    rows = {(row.operator, row.shapes): row for row in analyze(two_steps().run(tmp_path)).operators}
    assert set(rows) == {("aten::mm", "4×8, 8×2"), ("aten::linear", "4×8")}
    mm, linear = rows["aten::mm", "4×8, 8×2"], rows["aten::linear", "4×8"]
    assert (mm.calls, mm.dtypes, round(mm.device_seconds * 1e6)) == (3, "float32×2", 200)
    assert (linear.calls, round(linear.host_seconds * 1e6), linear.device_seconds) == (2, 40, 0)


def test_operators_beside_the_peak_of_their_device(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.step(1, 0, 1000)
    builder.op("aten::mm", 10, 40, dims=[[4096, 4096], [4096, 4096]], types=["c10::Half", "c10::Half"])
    builder.kernel("gemm", 30, 880, launched=25)  # 2 * 4096 ** 3 operations in 880 µs
    builder.op("aten::mm", 60, 10, dims=["what"], types=["c10::Half"])
    builder.kernel("gemm", 910, 10, launched=65)
    assert [row.roofline for row in analyze(builder.run(tmp_path)).operators] == [None, None]  # which device?
    builder.about = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]}
    mm, odd = analyze(builder.run(tmp_path)).operators
    assert mm.roofline == pytest.approx(0.5, rel=0.02) and odd.roofline is None


def test_the_work_of_the_device(tmp_path: Path) -> None:
    builder = two_steps()
    builder.kernel("Memcpy HtoD", 1000, 5, launched=1001, category="gpu_memcpy")
    gemm, copy = analyze(builder.run(tmp_path)).kernels
    assert gemm == KernelRow("gemm", "compute", 2, pytest.approx(200e-6), "aten::mm")
    assert (copy.name, copy.kind, copy.operator) == ("Memcpy HtoD", "copy", "")


def test_the_timeline_shows_a_step_and_all_marks(tmp_path: Path) -> None:
    builder = two_steps()
    builder.step(7, 1400, 200)
    found = analyze(builder.run(tmp_path))
    assert found.timeline_step == 7 and found.timeline_left_out == 0  # of 100, 200 and 300 µs
    assert [span.name for span in found.timeline if span.kind == "step"] == ["5", "6", "7"]
    bars = {(span.name, span.kind, span.detail) for span in found.timeline if span.kind != "step"}
    assert bars == {("aten::mm", "operator", "4×8, 8×2")}


def test_short_bars_are_merged(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.step(1, 0, 1e6)
    builder.op("aten::long", 0, 500_000)
    for number in range(HOST + 500):
        builder.op("aten::short", number * 200, 100 if number < HOST - 1 else 1)
    for number in range(300):
        builder.op("aten::apart", 600_000 + number * 1200, 0.5, thread=BACKWARD)
    found = analyze(builder.run(tmp_path))
    bars = [span for span in found.timeline if span.kind != "step"]
    merged = [span for span in bars if span.kind == "merged"]
    assert found.timeline_left_out == 801 and len(bars) < HOST + 400
    assert sum(int(span.name) for span in merged) == 501 and len(merged) == 1
    assert sum(span.name == "aten::apart" for span in bars) == 300


def test_what_surrounds_evidence_is_in_the_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def detect(run: Run) -> Iterator[Diagnosis]:
        yield _diagnosis(evidence=(Evidence("aten::mm", example=1120e-6 - 1000e-6),))

    builder = two_steps()
    builder.step(7, 1400, 200)
    assert not any(span.name == "aten::linear" for span in analyze(builder.run(tmp_path)).timeline)
    monkeypatch.setattr(registry, "DETECTORS", (Detector("x", lambda run: None, detect),))
    around = [span.name for span in analyze(builder.run(tmp_path)).timeline if span.kind == "operator"]
    assert sorted(around) == ["aten::linear", "aten::mm", "aten::mm"]


def _diagnosis(name: str = "x", share: float = 0.5, **more: object) -> Diagnosis:
    text = Text(name, name)
    return Diagnosis(name, text, text, share, (text,), **more)  # type: ignore[arg-type]


def test_a_detector_that_breaks_down_does_not_end_the_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: Run) -> Iterator[Diagnosis]:
        yield _diagnosis("first")
        raise ZeroDivisionError("by zero")

    detectors = (
        Detector("broken", lambda run: None, broken),
        Detector("small", lambda run: None, lambda run: [_diagnosis("small", 0.9, gain=0.01)]),
        Detector("great", lambda run: None, lambda run: [_diagnosis("great", 0.2)]),
        Detector("lacking", lambda run: NO_TRACE, lambda run: []),
    )
    monkeypatch.setattr(registry, "DETECTORS", detectors)
    found = analyze(two_steps().run(tmp_path))
    assert [(each.id, each.severity) for each in found.diagnoses] == [
        ("great", Impact.HIGH),
        ("small", Impact.LOW),
    ]
    assert (
        found.failed == {"broken": "ZeroDivisionError: by zero"} and "ZeroDivisionError" in found.notes[0].en
    )
    assert found.checked == ("small", "great") and found.unchecked == {"lacking": NO_TRACE}
    assert [
        each.id for each in analyze(two_steps().run(tmp_path), lambda name: name == "small").diagnoses
    ] == ["small"]


def test_without_steps_shares_are_of_everything(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 60)
    builder.op("aten::add", 80, 20)
    found = analyze(builder.run(tmp_path))
    assert not found.steps and found.seconds == pytest.approx(100e-6) and found.is_host_only
    assert found.share(TimePart.COMPUTE) == pytest.approx(0.8) and "no steps" in found.notes[0].en
    assert found.timeline_step is None and len(found.timeline) == 2


def test_memory_curves_keep_their_peaks() -> None:
    count = 50_000
    allocated = np.arange(count) % 100
    allocated[12_345] = 10**9
    curve = memory_curve(
        DeviceMemoryEvents(np.arange(count) * 1000, np.zeros(count, int), allocated, np.full(count, -1))
    )
    assert len(curve) <= MOST_POINTS and max(point.allocated for point in curve) == 10**9
    assert (
        curve[0].start == 0
        and curve[-1].start == pytest.approx((count - 1) * 1e-6)
        and curve[0].reserved == 0
    )


def test_memory_of_which_only_changes_are_known() -> None:
    unknown = np.full(4, -1)
    curve = memory_curve(DeviceMemoryEvents(np.arange(4), np.array([-100, 50, 300, -20]), unknown, unknown))
    assert [point.allocated for point in curve] == [0, 50, 350, 330]


def test_a_table_of_kernels_alone() -> None:
    (run,) = open_runs([real_trace(KERNEL_TABLE)])
    found = analyze(run)
    total = sum(row.seconds for row in found.kernels)
    assert run.kernels is not None and total == pytest.approx(run.kernels.seconds)
    assert sum(row.device_seconds for row in found.operators) == pytest.approx(total)
    assert sum(found.parts.values()) == pytest.approx(found.seconds) and not found.timeline


def test_a_real_run() -> None:
    found = analyze(real_run(SLOW_LOADER))
    assert found.diagnoses[0].id == "data_loader" and round(found.diagnoses[0].share, 3) == 0.396
    assert not found.failed and len(found.steps) == 6 and len(found.timeline) < 6000
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    operators = sum(row.device_seconds for row in found.operators)
    assert operators == pytest.approx(sum(row.seconds for row in found.kernels if row.operator), rel=0.05)


def test_a_wait_for_several_workers_is_no_slowdown_by_the_profiler(tmp_path: Path) -> None:
    built = TraceBuilder()
    start = 0.0
    for number, length in enumerate((60_000, 4_000, 4_000), 1):
        built.step(number, start, length)
        built.op("aten::mm", start, 1000)
        start += length
    run = built.run(tmp_path, rank_facts={"unprofiled_step": 0.004})
    assert not [note for note in analyze(run).notes if "slows" in note.en]


def _notes_of(folder: Path, unprofiled: float) -> str:
    run = two_steps().run(folder, rank_facts={"unprofiled_step": unprofiled})
    return " ".join(note.en for note in analyze(run).notes)


def test_a_profiler_that_slows_the_program_down_is_said_to(tmp_path: Path) -> None:
    steps = two_steps().trace(tmp_path).steps
    step = int((steps.end - steps.start).min()) / 1e9
    assert "The profiler slows the program down" in _notes_of(tmp_path, step / 2)
    assert "slows" not in _notes_of(tmp_path, step)
