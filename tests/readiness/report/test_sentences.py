"""The verdict in one line, sizes, shares; both languages say the same."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.readiness.samples import (
    by_name,
    empty,
    judged,
    large,
    one_device,
    sample,
    training_step,
    without_times,
)
from tests.report.texts import texts_of
from torchferry.readiness.model import OperatorSupport, Phase, Remedy, TensorSpec
from torchferry.readiness.report import words


def test_verdicts() -> None:
    assert [words.verdict(readiness).en for readiness in sample()] == [
        "ascend 2.13: 82.0% of operator time has a device kernel; 1 operator falls back to the CPU: "
        "aten::max_pool2d_with_indices_backward (67.4 MiB moved per step)",
        "cambricon 2.13: 70.0% of operator time has a device kernel; 1 operator is missing and raises: "
        "aten::to_sparse; 1 operator has a kernel with a limit: aten::add.Tensor",
        "tecorigin 2.13: 98.0% of operator time is known to have a device kernel; no operator falls back to the CPU "
        "or is missing; 1 operator is unknown, because the vendor's table does not list all: aten::nll_loss_forward",
        "intel: unknown: the vendor's table lists none of the 6 operators",
    ]
    assert words.verdict(sample()[0]).zh == (
        "ascend 2.13：82.0% 的算子时间有设备 kernel；"
        "1 个算子回退到 CPU：aten::max_pool2d_with_indices_backward（每步搬运 67.4 MiB）"
    )


def test_nothing_missing() -> None:
    assert words.verdict(large()[2]).en == (
        "moorethreads 2.13: 100% of operator time has a device kernel; no operator falls back to the CPU or is missing"
    )


def test_without_times_calls_are_counted_and_bytes_are_those_of_the_run() -> None:
    (readiness,) = without_times()
    assert words.verdict(readiness).en == (
        "ascend 2.13: 84.6% of operator calls have a device kernel (times are unknown); 1 operator falls back to the "
        "CPU: aten::max_pool2d_with_indices_backward (134.8 MiB moved in the run)"
    )


def test_nothing_judged() -> None:
    assert "there is nothing to judge" in words.verdict(empty()[0]).en


def test_many_names_are_counted_and_those_with_the_most_time_come_first() -> None:
    readiness = judged(large()[0].capture, "ascend", lambda use: OperatorSupport.FALLBACK)
    said = words.verdict(readiness).en
    assert "40 operators fall back to the CPU: aten::operator_39, aten::operator_38, " in said
    assert "aten::operator_35 and 35 more (" in said


def test_an_unknown_operator_of_a_complete_table() -> None:
    readiness = judged(training_step(), "ascend", by_name(to_sparse=OperatorSupport.UNKNOWN))
    assert words.verdict(readiness).en.endswith(
        "1 operator is unknown to the vendor's table: aten::to_sparse"
    )


def test_a_fallback_without_time_is_not_hidden_by_rounding() -> None:
    capture = training_step()
    uses = tuple(
        replace(use, seconds=0.0) if use.operator == "aten::to_sparse" else use for use in capture.uses
    )
    readiness = judged(replace(capture, uses=uses), "ascend", by_name(to_sparse=OperatorSupport.FALLBACK))
    assert words.ready_percent(readiness) == "> 99.9%"


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((1, 3), (99, 1), True), ((), (), True)],
)
def test_contiguous(shape: tuple[int, ...], stride: tuple[int, ...], expected: bool) -> None:
    assert words.is_contiguous(TensorSpec("float32", shape, stride)) is expected


def test_arguments_leave_tensors_out() -> None:
    use = one_device()[0].judgements[0].use
    assert words.arguments(use.signature) == "bias=None, stride=[2, 2], transposed=False"
    assert words.tensors(use.signature.inputs, 1) == "float32[8,3,224,224], … +1"


def test_the_placeholders_are_the_same_in_both_languages() -> None:
    for text in texts_of(words):
        assert sorted(re.findall(r"\{(\w+)\}", text.en)) == sorted(re.findall(r"\{(\w+)\}", text.zh)), text


def test_every_kind_has_words() -> None:
    assert set(words.SUPPORT) == set(OperatorSupport)
    assert (set(words.REMEDY), set(words.PHASE)) == (set(Remedy), set(Phase))


def test_reports_do_not_import_torch() -> None:
    modules = (
        "capture_json",
        "report.text",
        "report.json",
        "report.html",
        "report.sheets",
    )
    names = ", ".join(f"torchferry.readiness.{name}" for name in modules)
    program = (
        f"import sys, {names}; sys.exit(bool({{'torch', 'rich', 'openpyxl', 'numpy'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
