"""Communication, and what covers it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import BACKWARD, TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from torchferry.perf.detect import host_bound
from torchferry.perf.detect.communication import DETECTOR

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def step(begin: float, messages: int = 1) -> TraceBuilder:
    """600 µs of computing; then, or meanwhile, 300 µs of communication."""
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 10)
    built.kernel("gemm", 0, 600, launched=1)
    length = 300 / messages
    for number in range(messages):
        built.op("c10d::allreduce_", 20 + number * 5, 4, dims=[[[1000]]], types=["TensorList"])
        built.kernel(REDUCE, begin + number * length, length, launched=21 + number * 5, stream=9)
    return built


def test_covered_by_computation(tmp_path: Path) -> None:
    assert not found(DETECTOR, step(begin=280).run(tmp_path))


def test_nothing_covers_it(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step(begin=500).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.2)
    assert "30.0% of the time; 33% of it overlaps with computation, so 20.0%" in diagnosis.summary.en
    assert diagnosis.evidence[0].what == REDUCE
    assert "bucket_cap_mb" in diagnosis.remedies[0].en


def test_many_small_messages(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step(begin=600, messages=20).run(tmp_path))
    assert "20 messages per step, half of them with 1000 numbers" in diagnosis.remedies[0].en


def test_data_parallel_is_named(tmp_path: Path) -> None:
    built = step(begin=600)
    built.python("torch/nn/parallel/data_parallel.py(160): forward", 0, 500)
    assert "nn.DataParallel" in the(DETECTOR, built.run(tmp_path)).remedies[0].en


def on_host(begin: float) -> TraceBuilder:
    """A backend's thread reduces, the program's computes for 500 µs."""
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 500)
    built.annotation("gloo:all_reduce", begin, 300, thread=BACKWARD)
    return built


def test_where_the_host_computes(tmp_path: Path) -> None:
    assert not found(DETECTOR, on_host(100).run(tmp_path))
    run = on_host(600).run(tmp_path)
    assert the(DETECTOR, run).share == pytest.approx(0.3)
    assert not found(host_bound.DETECTOR, run)  # it is not Python's time


def test_the_simulated_device_shows_small_messages_only(tmp_path: Path) -> None:
    assert not found(DETECTOR, on_host(600).run(tmp_path, profile=SIMULATED))
    built = on_host(600)
    for number in range(20):
        built.op("c10d::allreduce_", 600 + number, 1, dims=[[[1000]]], types=["TensorList"])
    diagnosis = the(DETECTOR, built.run(tmp_path, profile=SIMULATED))
    assert (diagnosis.share, diagnosis.gain) == (0.0, None)
    assert "20 messages per step" in diagnosis.remedies[0].en
