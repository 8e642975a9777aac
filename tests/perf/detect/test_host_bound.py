"""Gaps in the device's work while the host calls operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.host_bound import DETECTOR
from torchferry.perf.model import in_words


def calls(kernel: float, every: float = 50) -> TraceBuilder:
    """One step of 20 operators; the host needs 40 µs for each, and 10 µs of Python before it."""
    built = TraceBuilder()
    built.step(1, 0, 20 * every)
    built.python("train.py(7): train", 0, 20 * every)
    for number in range(20):
        start = number * every
        built.op("aten::add", start + 10, 40)
        built.kernel("add_kernel", start + 45, kernel, launched=start + 44)
    return built


def test_a_device_that_has_enough_to_do(tmp_path: Path) -> None:
    assert not found(DETECTOR, calls(kernel=50).run(tmp_path))


def test_kernels_shorter_than_the_calls(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, calls(kernel=5).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.9, abs=0.01)
    assert diagnosis.gain == diagnosis.share
    assert "20 tasks per step" in diagnosis.summary.en
    assert "5 µs or less, while half of the calls take the host 40 µs" in diagnosis.summary.en
    by_what = {in_words(each.what, "en"): each for each in diagnosis.evidence}
    assert by_what["aten::add"].seconds == pytest.approx(20 * 35e-6)
    assert by_what["Python between operators"].seconds == pytest.approx(20 * 10e-6)
    assert {each.place for each in diagnosis.evidence} == {"train.py:7(train)"}


def test_the_marks_around_operators_are_told(tmp_path: Path) -> None:
    built = calls(kernel=5)
    built.annotation("Optimizer.step#SGD.step", 0, 500)
    details = {each.detail: each.count for each in the(DETECTOR, built.run(tmp_path)).evidence if each.detail}
    assert details == {"Optimizer.step#SGD.step": 10}


def test_gaps_that_a_wait_brings_are_not_the_calls(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 10)
    built.kernel("gemm", 5, 395, launched=4)
    built.op("aten::item", 20, 385)
    built.runtime("cudaStreamSynchronize", 25, 375)
    built.op("aten::mm", 410, 150)
    built.kernel("gemm", 560, 440, launched=555)
    assert not found(DETECTOR, built.run(tmp_path))


def python_between(frame: str, operator: float = 40) -> TraceBuilder:
    """Ten operators; in between, for the rest of 100 µs, one function."""
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.python("train.py(3): main", 0, 1000)
    for start in range(0, 1000, 100):
        built.op("aten::mm", start, operator)
        if frame:
            built.python(frame, start + operator, 100 - operator)
            built.python(
                "<built-in method append of list object at 0x7f>", start + operator + 1, 98 - operator
            )
    return built


def test_where_the_host_computes_operators_take_the_time(tmp_path: Path) -> None:
    assert not found(DETECTOR, python_between("loss.py(9): weights", operator=95).run(tmp_path))


def test_python_of_pytorch_is_as_it_is(tmp_path: Path) -> None:
    assert not found(DETECTOR, python_between("torch/nn/modules/module.py(1770): _call_impl").run(tmp_path))


def test_a_trace_without_operators_does_not_tell_where_they_are(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    assert not found(DETECTOR, built.run(tmp_path))


def test_without_frames_pytorchs_own_python_counts_and_is_named(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 600)
    assert not found(DETECTOR, built.run(tmp_path))
    small = TraceBuilder()
    small.step(1, 0, 1000)
    small.op("aten::mm", 0, 300)
    diagnosis = the(DETECTOR, small.run(tmp_path))
    assert "its libraries or PyTorch" in diagnosis.summary.en and "larger batch" in diagnosis.remedies[0].en


def test_what_the_profiler_adds_to_python_does_not_count(tmp_path: Path) -> None:
    built = python_between("loss.py(9): weights", operator=80)
    assert the(DETECTOR, built.run(tmp_path)).share == pytest.approx(0.2)
    slowed_down = built.run(tmp_path, rank_facts={"unprofiled_step": 0.0008})
    assert not found(DETECTOR, slowed_down)


def test_python_of_the_program_takes_it(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, python_between("loss.py(9): weights").run(tmp_path))
    assert diagnosis.share == pytest.approx(0.6)
    assert diagnosis.gain is None
    assert [(each.place, each.count) for each in diagnosis.evidence] == [("loss.py:9(weights)", 10)]


def test_without_frames_most_of_the_time_must_be_pythons(tmp_path: Path) -> None:
    for operator, share in ((60, None), (30, 0.7)):
        built = python_between("", operator)
        built.events = [event for event in built.events if event["cat"] != "python_function"]
        diagnoses = found(DETECTOR, built.run(tmp_path))
        assert [each.share for each in diagnoses] == ([] if share is None else [pytest.approx(share)])


def test_real_runs() -> None:
    assert not found(DETECTOR, real_run(LANGUAGE_MODEL))
    assert the(DETECTOR, real_run(FAST_LOADER)).share == pytest.approx(0.22, abs=0.005)
    small_model = the(DETECTOR, real_run(VENDORS_TIMELINE))
    assert small_model.share > 0.6
    assert "276 tasks per step" in small_model.summary.en
