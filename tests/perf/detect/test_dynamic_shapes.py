"""Shapes that no step before had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from tests.perf.real_traces import FAST_LOADER, real_run
from torchferry.perf.detect.dynamic_shapes import DETECTOR
from torchferry.perf.model import Impact
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import read_kernels
from torchferry.text import Text


def steps(*sizes_of_each: tuple[int, ...]) -> TraceBuilder:
    """Steps of 1000 µs with calls of one operator, 100 µs each."""
    built = TraceBuilder()
    for number, sizes in enumerate(sizes_of_each):
        built.step(number, number * 1000, 1000)
        built.python("train.py(4): forward", number * 1000, 1000)
        for call, size in enumerate(sizes):
            built.op("aten::relu", number * 1000 + call * 100, 100, dims=[[8, size]], types=["float"])
    return built


LAYERS = (64, 128, 256, 512)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([LAYERS] * 4, id="layers that differ"),
        pytest.param([LAYERS, LAYERS, LAYERS, (32, 32, 32, 32)], id="a last, smaller batch"),
        pytest.param([(64,) * 4, (32,) * 4, (64,) * 4, (32,) * 4], id="two sizes in turn"),
        pytest.param([(64,) * 4] * 3 + [(1,) * 4, (2,) * 4] + [(64,) * 4] * 3, id="now and then"),
    ],
)
def test_shapes_that_are_known(sizes: list[tuple[int, ...]], tmp_path: Path) -> None:
    assert not found(DETECTOR, steps(*sizes).run(tmp_path, profile=SIMULATED))


def test_a_new_size_in_each_step(tmp_path: Path) -> None:
    built = steps((64,) * 4, (65,) * 4, (66,) * 4, (67,) * 4)
    diagnosis = the(DETECTOR, built.run(tmp_path, profile=SIMULATED))
    assert diagnosis.share == pytest.approx(0.3)
    assert diagnosis.severity is Impact.HIGH
    assert diagnosis.summary.en.startswith("In 3 of 4 steps")
    (evidence,) = diagnosis.evidence
    assert evidence.detail == Text("shapes: 3; 8×65 | 8×66 | 8×67", "形状：3 种；8×65 | 8×66 | 8×67")
    assert evidence.place == "train.py:4(forward)"
    assert any("jit_compile=False" in remedy.en for remedy in diagnosis.remedies)


@pytest.mark.parametrize("device", ["cpu", "cuda", "mlu"])
def test_where_operators_are_ready_for_every_shape_it_matters_little(device: str, tmp_path: Path) -> None:
    run = steps((64,) * 4, (65,) * 4, (66,) * 4).run(tmp_path, profile={"device": device})
    diagnosis = the(DETECTOR, run)
    assert diagnosis.severity is Impact.LOW
    assert diagnosis.gain == 0.0


def test_two_steps_do_not_tell(tmp_path: Path) -> None:
    assert DETECTOR.lacks(steps((64,), (65,)).run(tmp_path)) is not None


def test_in_a_table_of_kernels(tmp_path: Path) -> None:
    file = tmp_path / "kernel_details.csv"
    head = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes\n"
    for grows, expected in ((0, 0), (1, 1)):
        rows = [f'{step},k,Relu,AI_CORE,{step * 100},100,"8,{64 + grows * step}"\n' for step in range(4)]
        file.write_text(head + "".join(rows))
        run = Run(("kernel_details.csv",), kernels=read_kernels(file), profile={"device": "npu"})
        assert [round(each.share, 2) for each in found(DETECTOR, run)] == [0.75] * expected


def test_a_real_run_without() -> None:
    assert not found(DETECTOR, real_run(FAST_LOADER))
