"""Copies from the device to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL_ELSEWHERE, real_run
from torchferry.perf.detect import non_contiguous
from torchferry.perf.detect.device_copies import DETECTOR

WITHIN = "Memcpy DtoD (Device -> Device)"
PLAIN, TRANSPOSED = [8, 1], [1, 8]


def step_with(kernel: str, category: str = "kernel", strides: list[int] = PLAIN) -> TraceBuilder:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::mm", 0, 10)
    built.kernel("gemm", 10, 400, launched=5)
    both = {"dims": [[8, 8], [8, 8]], "types": ["float", "float"], "strides": [PLAIN, strides]}
    built.op("aten::clone", 20, 20)
    built.op("aten::copy_", 21, 10, **both)
    built.kernel(kernel, 410, 100, launched=25, category=category)
    return built


@pytest.mark.parametrize("kernel", ["elementwise_kernel", "MatMulV2", "AsStridedConvolution"])
def test_other_kernels(kernel: str, tmp_path: Path) -> None:
    assert not found(DETECTOR, step_with(kernel).run(tmp_path))


def test_a_copy_to_the_device(tmp_path: Path) -> None:
    assert not found(DETECTOR, step_with("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy").run(tmp_path))


@pytest.mark.parametrize(
    ("kernel", "category"),
    [
        (WITHIN, "gpu_memcpy"),
        ("aclnnInplaceCopy_ViewCopyAiCore_ViewCopy", "kernel"),
        ("TensorMove12", "kernel"),
    ],
)
def test_within_the_device(kernel: str, category: str, tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step_with(kernel, category).run(tmp_path))
    assert diagnosis.gain == pytest.approx(0.1)


def test_copies_for_the_sake_of_order_have_their_own_detector(tmp_path: Path) -> None:
    run = step_with("ViewCopy", strides=TRANSPOSED).run(tmp_path)
    assert not found(DETECTOR, run)
    assert the(non_contiguous.DETECTOR, run).share == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["D2DCopywithStreamSynchronize", "PTCopy"])
def test_names_of_old_plugins(name: str, tmp_path: Path) -> None:
    built = step_with("MatMul")
    built.op(name, 100, 300)
    assert the(DETECTOR, built.run(tmp_path)).share == pytest.approx(0.3)


def test_clones_where_the_host_computes(tmp_path: Path) -> None:
    for name, expected in (("aten::to", 0), ("aten::clone", 1)):
        built = TraceBuilder()
        built.step(0, 0, 1000)
        built.op(name, 0, 300)
        built.op("aten::copy_", 10, 280, dims=[[8, 8]] * 2, types=["float"] * 2, strides=[PLAIN] * 2)
        assert len(found(DETECTOR, built.run(tmp_path))) == expected


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL_ELSEWHERE])
def test_real_runs_without(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
