"""Conversions of formats, types and orders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, real_run
from torchferry.perf.detect.conversions import Change, change_of
from torchferry.perf.detect.format_conversion import DETECTOR


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("trans_TransData_9", Change.FORMAT),
        ("aclnnMm_TransData_TransData", Change.FORMAT),
        ("TransData", Change.FORMAT),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>(...)", Change.FORMAT),
        ("trans_Cast_7", Change.TYPE),
        ("aclnnMm_CastAiCore_Cast", Change.TYPE),
        ("Cast", Change.TYPE),
        ("aclnnPermute_TransposeAiCore_Transpose", Change.ORDER),
        ("Transpose", Change.ORDER),
        ("batched_transpose_32x16_dword", Change.ORDER),
        ("trans_TransData_3_MemSet", None),
        ("TransposeBatchMatMul", None),
        ("Conv2DTransposeD", None),
        ("Conv2DBackpropFilter6", None),
        ("BroadcastTo", None),
    ],
)
def test_what_kernels_change(kernel: str, expected: Change | None) -> None:
    assert change_of(kernel) is expected


def step_with(kernel: str, duration: float, **inputs: object) -> TraceBuilder:
    built = TraceBuilder()
    built.step(0, 0, 1000)
    built.op("aten::mm", 0, 10)
    built.kernel("MatMul", 10, 400, launched=5)
    built.op("aten::copy_", 20, 10, **inputs)
    built.kernel(kernel, 410, duration, launched=25)
    return built


def test_few_conversions(tmp_path: Path) -> None:
    assert not found(DETECTOR, step_with("TransData", 20).run(tmp_path))


def test_many_conversions(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, step_with("trans_TransData_1", 200).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.2)
    assert "20.0% change the format" in diagnosis.summary.en


def test_a_kernel_without_a_name_is_known_by_its_operator(tmp_path: Path) -> None:
    cast = {"dims": [[64], [64]], "types": ["c10::Half", "float"], "strides": [[1], [1]]}
    diagnosis = the(DETECTOR, step_with("elementwise_kernel", 200, **cast).run(tmp_path))
    assert "20.0% the dtype" in diagnosis.summary.en
    assert not found(
        DETECTOR, step_with("elementwise_kernel", 200, **{**cast, "types": ["float"] * 2}).run(tmp_path)
    )


def test_numbers_that_the_host_wraps_are_none(tmp_path: Path) -> None:
    for dims, expected in (([], 0), ([4096], 1)):
        built = TraceBuilder()
        built.step(0, 0, 1000)
        built.op("aten::to", 0, 300)
        built.op("aten::copy_", 0, 300, dims=[dims, dims], types=["float", "double"])
        assert len(found(DETECTOR, built.run(tmp_path))) == expected


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL])
def test_real_runs_without(name: str) -> None:
    assert not found(DETECTOR, real_run(name))
