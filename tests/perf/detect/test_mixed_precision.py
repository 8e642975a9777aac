"""Float32 where the device is faster in half precision."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from tests.perf.real_traces import FAST_LOADER, KERNEL_TABLE, LANGUAGE_MODEL, real_run, real_trace
from torchferry.perf.detect.mixed_precision import DETECTOR
from torchferry.perf.model import Impact
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import read_kernels
from torchferry.vendors.registry import get_vendor


def step(dtype: str, product: float = 500, major: int = 8, on_device: bool = True) -> TraceBuilder:
    """A step of 1,000 µs with one product of matrices."""
    built = TraceBuilder(about={"deviceProperties": [{"id": 0, "name": "a GPU", "computeMajor": major}]})
    built.step(1, 0, 1000)
    built.op("aten::linear", 0, 820, dims=[[64, 512], [512, 512]], types=[dtype, dtype])
    built.op("aten::addmm", 5, 800, dims=[[512], [64, 512], [512, 512]], types=[dtype] * 3)
    if on_device:
        built.kernel("gemm", 20, product, launched=10)
    return built


@pytest.mark.parametrize("dtype", ["c10::Half", "c10::BFloat16", "double"])
def test_other_types(tmp_path: Path, dtype: str) -> None:
    assert not found(DETECTOR, step(dtype).run(tmp_path))


def test_float32(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step("float").run(tmp_path))
    assert diagnosis.share == pytest.approx(0.5)
    assert diagnosis.gain == pytest.approx(0.25)
    assert "bfloat16, float16" in diagnosis.summary.en
    assert 'torch.autocast("cuda", torch.bfloat16)' in diagnosis.remedies[0].en
    (evidence,) = diagnosis.evidence
    assert evidence.what == "aten::addmm" and "64×512" in evidence.detail and "float32" in evidence.detail


def test_products_that_take_little(tmp_path: Path) -> None:
    assert not found(DETECTOR, step("float", product=50).run(tmp_path))


def test_devices_without_units_for_it(tmp_path: Path) -> None:
    assert not found(DETECTOR, step("float", major=6).run(tmp_path))
    assert "float16 for them" in the(DETECTOR, step("float", major=7).run(tmp_path)).summary.en


def test_what_autocast_leaves_in_float32_is_meant_so(tmp_path: Path) -> None:
    assert not found(DETECTOR, step("float").run(tmp_path, rank_facts={"autocast": True}))


def test_the_cpu_is_left_alone(tmp_path: Path) -> None:
    assert not found(DETECTOR, step("float", on_device=False).run(tmp_path))


def test_on_the_simulated_device_it_has_no_share(tmp_path: Path) -> None:
    run = step("float", on_device=False).run(tmp_path, profile=SIMULATED, vendor=get_vendor("ascend"))
    diagnosis = the(DETECTOR, run)
    assert (diagnosis.share, diagnosis.gain, diagnosis.severity) == (0.0, None, Impact.LOW)
    assert "no device times" in diagnosis.summary.en


def table(dtype: str, folder: Path) -> Run:
    path = folder / "kernel_details.csv"
    path.write_text(
        "Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types\n"
        f'mm,MatMulV2,AI_CORE,0,60,"64,512;512,512",{dtype};{dtype}\n'
        f'add,Add,AI_VECTOR_CORE,60,40,"64,512;64,512",FLOAT;FLOAT\n'
    )
    return Run((path.name,), kernels=read_kernels(path), vendor=get_vendor("ascend"))


def test_tables_of_kernels(tmp_path: Path) -> None:
    assert not found(DETECTOR, table("FLOAT16", tmp_path))
    assert the(DETECTOR, table("FLOAT", tmp_path)).share == pytest.approx(0.6)


def test_real_runs() -> None:
    assert not found(DETECTOR, real_run(LANGUAGE_MODEL))  # bfloat16
    assert the(DETECTOR, real_run(FAST_LOADER)).share == pytest.approx(0.482, abs=0.001)
    path = real_trace(KERNEL_TABLE)
    run = Run((path.name,), kernels=read_kernels(path), vendor=get_vendor("ascend"))
    assert not found(DETECTOR, run)  # bfloat16
