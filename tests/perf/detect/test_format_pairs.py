"""Conversions that undo each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.format_pairs import DETECTOR
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import read_kernels

HEAD = (
    "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats"
)
THERE = 'TransData,AI_CORE,{},100,0,"8,3,4,4",FLOAT16,NCHW,"8,1,4,4,16",FLOAT16,NC1HWC0'
BACK = 'TransData,AI_CORE,{},100,0,"8,1,4,4,16",FLOAT16,NC1HWC0,"8,3,4,4",FLOAT16,NCHW'
BACK_OTHER = 'TransData,AI_CORE,{},100,0,"8,1,4,4,16",FLOAT16,NC1HWC0,"8,9,4,4",FLOAT16,NCHW'
CONV = 'Conv2D,AI_CORE,{},100,0,"8,1,4,4,16",FLOAT16,NC1HWC0,"8,1,4,4,16",FLOAT16,NC1HWC0'


def table(folder: Path, *kernels: str) -> Run:
    rows = [f"k{number}," + row.format(number * 100) for number, row in enumerate(kernels)]
    file = folder / "kernel_details.csv"
    file.write_text("\n".join([HEAD, *rows]) + "\n")
    return Run(("kernel_details.csv",), kernels=read_kernels(file))


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param((THERE, CONV, BACK), id="for an operator between them"),
        pytest.param((THERE, BACK_OTHER), id="another tensor"),
        pytest.param((THERE, THERE), id="two tensors there"),
    ],
)
def test_conversions_that_are_needed(kernels: tuple[str, ...], tmp_path: Path) -> None:
    assert not found(DETECTOR, table(tmp_path, *kernels))


def test_there_and_back(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, table(tmp_path, CONV, BACK, THERE, CONV, CONV, BACK, THERE, BACK))
    assert diagnosis.gain == pytest.approx(0.5)  # 2 pairs of 2 kernels; the last one is needed
    assert diagnosis.summary.en.startswith("2 conversions are reversed")


def operators(*kernels_of_each: tuple[str, ...]) -> TraceBuilder:
    """Operators in a row with their kernels, 100 µs each."""
    built = TraceBuilder()
    built.step(0, 0, 1000)
    time = 0
    for number, kernels in enumerate(kernels_of_each):
        built.op(f"aten::op{number}", number * 10, 10)
        for kernel in kernels:
            built.kernel(kernel, 100 + time, 100, launched=number * 10 + 5)
            time += 100
    return built


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param([("TransData", "TransData", "MatMul")], id="both inputs of one operator"),
        pytest.param([("TransData", "MatMul"), ("TransData", "MatMul")], id="only inputs"),
        pytest.param([("MatMul", "TransData"), ("Cast", "MatMul")], id="of different kinds"),
        pytest.param([("TransData",), ("TransData", "MatMul")], id="an operator that only converts"),
    ],
)
def test_conversions_in_a_trace_that_may_be_needed(kernels: list[tuple[str, ...]], tmp_path: Path) -> None:
    assert not found(DETECTOR, operators(*kernels).run(tmp_path))


def test_output_converted_and_then_input_again(tmp_path: Path) -> None:
    run = operators(("MatMul", "trans_TransData_1"), ("trans_TransData_2", "MatMul")).run(tmp_path)
    diagnosis = the(DETECTOR, run)
    assert diagnosis.gain == pytest.approx(0.2)


def casts(*pairs: tuple[str, str], between: str = "") -> TraceBuilder:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.python("train.py(5): forward", 0, 1000)
    for number, (target, source) in enumerate(pairs):
        start = number * 200
        built.op("aten::to", start, 110)
        built.op("aten::copy_", start, 100, dims=[[64], [64]], types=[target, source])
        if between:
            built.op(between, start + 120, 50)
    return built


HALF, FULL = ("c10::Half", "float"), ("float", "c10::Half")


@pytest.mark.parametrize("built", [casts(HALF, FULL, between="aten::mul"), casts(HALF, HALF), casts(HALF)])
def test_casts_that_are_needed(built: TraceBuilder, tmp_path: Path) -> None:
    assert not found(DETECTOR, built.run(tmp_path))


@pytest.mark.parametrize("between", ["", "aten::view"])
def test_casts_there_and_back(between: str, tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, casts(HALF, FULL, between=between).run(tmp_path))
    assert diagnosis.gain == pytest.approx(0.2)
    assert diagnosis.evidence[0].place == "train.py:5(forward)"


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL, VENDORS_TIMELINE])
def test_real_runs_without(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
