"""Waits for results of the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, LANGUAGE_MODEL_ELSEWHERE, real_run
from torchferry.perf.detect.synchronization import DETECTOR
from torchferry.perf.model import Impact


def on_device(reads: bool, synchronizes: bool = False) -> TraceBuilder:
    """Two steps: 400 µs of computing, and, if the host has waited, 200 µs until it has called again."""
    built = TraceBuilder()
    for number, start in enumerate((0, 1000)):
        built.step(number, start, 1000)
        built.python("train.py(7): train", start, 1000)
        built.op("aten::mm", start, 20)
        built.kernel("gemm", start + 10, 390, launched=start + 5)
        if reads:
            built.op("aten::item", start + 30, 372)
            built.op("aten::_local_scalar_dense", start + 31, 370)
            built.runtime("cudaStreamSynchronize", start + 40, 360)
        if synchronizes:
            built.runtime("cudaDeviceSynchronize", start + 40, 362)
        built.op("aten::mm", start + 580, 20)
        built.kernel("gemm", start + (600 if reads or synchronizes else 400), 400, launched=start + 590)
    return built


def test_a_loop_that_does_not_wait(tmp_path: Path) -> None:
    assert not found(DETECTOR, on_device(reads=False).run(tmp_path))


def test_item_in_every_step(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, on_device(reads=True).run(tmp_path))
    assert diagnosis.gain == pytest.approx(0.2, abs=0.01)  # 200 µs of idling, not the 370 µs of waiting
    assert diagnosis.share == pytest.approx(0.37)
    (evidence,) = diagnosis.evidence
    assert (evidence.what, evidence.place, evidence.count) == ("aten::item", "train.py:7(train)", 2)
    assert "1.0 times per step" in diagnosis.summary.en
    assert ".item()" in diagnosis.remedies[0].en


def test_the_device_that_goes_on_computing_loses_nothing(tmp_path: Path) -> None:
    built = on_device(reads=True)
    for start in (0, 1000):
        built.kernel("gemm", start + 400, 200, launched=start + 25)
    assert not found(DETECTOR, built.run(tmp_path))


def test_the_loader_may_wait(tmp_path: Path) -> None:
    built = on_device(reads=True)
    for start in (0, 1000):
        built.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 25, 400)
    assert not found(DETECTOR, built.run(tmp_path))


def test_copies_to_the_device_are_no_waits_for_it(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::to", 0, 300)
    built.op("aten::copy_", 5, 290)
    built.kernel("Memcpy HtoD (Pageable -> Device)", 20, 200, launched=10, category="gpu_memcpy", bytes=4096)
    built.runtime("cudaStreamSynchronize", 20, 250)
    built.op("aten::mm", 500, 20)
    built.kernel("gemm", 520, 400, launched=510)
    assert not found(DETECTOR, built.run(tmp_path))


def test_the_program_synchronizes_itself(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, on_device(reads=False, synchronizes=True).run(tmp_path))
    assert diagnosis.evidence[0].what == "cudaDeviceSynchronize"
    assert "Remove synchronize()" in diagnosis.remedies[0].en


def simulated(*inner: tuple[str, ...], frame: str = "train.py(7): train") -> TraceBuilder:
    """Operators on a host that plays a device: each tuple holds operators from outside in, once per step."""
    built = TraceBuilder()
    for number in range(3):
        start = number * 1000
        built.step(number, start, 1000)
        built.python("train.py(3): main", start, 1000)
        built.op("aten::mm", start, 900)
        for at, names in enumerate(inner):
            built.python(frame, start + 910 + 10 * at, 9)
            for depth, name in enumerate(names):
                built.op(name, start + 911 + 10 * at + depth, 6 - depth)
    return built


READ = ("aten::item", "aten::_local_scalar_dense")


def test_the_simulated_device_shows_how_often(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, simulated(READ).run(tmp_path, profile=SIMULATED))
    assert "1.0 times per step" in diagnosis.summary.en and "no device times" in diagnosis.summary.en
    assert (diagnosis.share, diagnosis.gain, diagnosis.severity) == (0.0, None, Impact.MEDIUM)
    assert [(each.what, each.place, each.count) for each in diagnosis.evidence] == [
        ("aten::item", "train.py:7(train)", 3)
    ]


def test_many_of_them_weigh_more_than_one(tmp_path: Path) -> None:
    built = TraceBuilder()
    for number in range(3):
        built.step(number, number * 1000, 1000)
        built.op("aten::mm", number * 1000, 900)
        for at in range(12):
            built.op("aten::item", number * 1000 + 910 + 6 * at, 5)
            built.op("aten::_local_scalar_dense", number * 1000 + 911 + 6 * at, 3)

    assert the(DETECTOR, built.run(tmp_path, profile=SIMULATED)).severity is Impact.HIGH


def test_a_step_of_the_simulated_device_without_them(tmp_path: Path) -> None:
    assert not found(DETECTOR, simulated().run(tmp_path, profile=SIMULATED))


def test_reading_once_in_three_steps_is_for_a_log(tmp_path: Path) -> None:
    built = simulated()
    built.op("aten::item", 950, 5)
    built.op("aten::_local_scalar_dense", 951, 3)
    assert not found(DETECTOR, built.run(tmp_path, profile=SIMULATED))


def test_on_the_cpu_nobody_waits(tmp_path: Path) -> None:
    assert not found(DETECTOR, simulated(READ).run(tmp_path))


@pytest.mark.parametrize(
    "frame", ["torch/optim/optimizer.py(90): _get_value", "torch/amp/grad_scaler.py(340): step"]
)
def test_libraries_read_numbers_of_their_own(tmp_path: Path, frame: str) -> None:
    assert not found(DETECTOR, simulated(READ, frame=frame).run(tmp_path, profile=SIMULATED))


def test_results_of_unknown_size(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, simulated(("aten::index", "aten::nonzero")).run(tmp_path, profile=SIMULATED))
    assert [each.what for each in diagnosis.evidence] == ["aten::index"]
    assert "torch.where" in diagnosis.remedies[0].en


@pytest.mark.parametrize(("function", "waits"), [("cpu", True), ("tolist", True), ("to", False)])
def test_copies_to_the_host(tmp_path: Path, function: str, waits: bool) -> None:
    """Which way `to` copies, the simulated device's trace does not tell: most of them go to the device."""
    frame = f"<built-in method {function} of Tensor object at 0x7f>"
    run = simulated(("aten::to", "aten::_to_copy"), frame=frame).run(tmp_path, profile=SIMULATED)
    assert [each.what for diagnosis in found(DETECTOR, run) for each in diagnosis.evidence] == (
        ["aten::to"] if waits else []
    )


def test_what_lies_on_the_host_already_is_not_copied(tmp_path: Path) -> None:
    frame = "<built-in method tolist of Tensor object at 0x7f>"
    assert not found(DETECTOR, simulated(("aten::to",), frame=frame).run(tmp_path, profile=SIMULATED))


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL, LANGUAGE_MODEL_ELSEWHERE])
def test_real_runs_that_do_not_wait(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
