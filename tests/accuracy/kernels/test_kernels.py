"""The kernels that operators launched, from traces written by hand and from those of real devices."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readiness.trace.making import Events, op, write
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.kernels import (
    KernelUse,
    kernel_report,
    kernel_uses,
    kernels_of_calls,
    recorded_report,
)
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord
from torchferry.cli.main import main
from torchferry.errors import InputError
from torchferry.readiness.trace.reader import read_launches

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"
real = pytest.mark.skipif(not TRACES.exists(), reason="the traces of real devices are not here")


def kernel(name: str, start: int, operator: int) -> dict[str, Any]:
    args = {"External id": operator}
    return {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 2, "args": args,
    }  # fmt: skip


def addmm(start: int, number: int, rows: int) -> dict[str, Any]:
    dims = [[4], [rows, 8], [8, 4], [], []]
    types = ["float", "float", "float", "Scalar", "Scalar"]
    return op("aten::addmm", start, 5, External_id=number, Input_Dims=dims, Input_type=types)


def uses_of(folder: Path, events: Events) -> list[KernelUse]:
    return kernel_uses(read_launches(write(folder, events)).calls)


def recorded(number: int, operator: str, *shapes: tuple[int, ...], step: int = 1) -> Call:
    inputs = tuple(
        TensorRecord(f"input/{index}", "float32", shape, (1,) * len(shape), "cpu")
        for index, shape in enumerate(shapes)
    )
    return Call(number, operator, step, "forward", inputs=inputs)


def test_an_operator_and_its_kernels_in_the_order_of_their_start(tmp_path: Path) -> None:
    events = [addmm(0, 1, 2), kernel("gemm", 20, 1), kernel("memset", 10, 1), op("aten::view", 30, 2)]
    (use,) = uses_of(tmp_path, events)
    assert (use.operator, use.kernels, use.calls) == ("aten::addmm", ("memset", "gemm"), 1)
    assert use.shapes == ((4,), (2, 8), (8, 4))
    assert use.nanoseconds == 4000


def test_other_shapes_may_choose_other_kernels(tmp_path: Path) -> None:
    events = [addmm(0, 1, 2), kernel("small", 20, 1), addmm(30, 2, 999), kernel("large", 50, 2)]
    events += [addmm(60, 3, 2), kernel("small", 80, 3)]
    found = {use.kernels: use.calls for use in uses_of(tmp_path, events)}
    assert found == {("small",): 2, ("large",): 1}


def test_recorded_calls_find_theirs_by_shape_and_order(tmp_path: Path) -> None:
    events = [addmm(0, 1, 2), kernel("first", 20, 1), addmm(30, 2, 2), kernel("second", 50, 2)]
    events += [addmm(60, 3, 999), kernel("large", 80, 3)]
    launches = read_launches(write(tmp_path, events)).calls
    shapes = ((4,), (2, 8), (8, 4))
    calls = [recorded(7, "aten::addmm", *shapes), recorded(9, "aten::addmm", *shapes)]
    found = kernels_of_calls([*calls, recorded(10, "aten::addmm", (1,))], launches)
    assert {number: launched.kernels for number, launched in found.items()} == {7: ("first",), 9: ("second",)}
    assert all(launched.is_same_call for launched in found.values())


def test_a_record_with_more_calls_than_the_trace_gets_kernels_of_the_same_sort(tmp_path: Path) -> None:
    launches = read_launches(write(tmp_path, [addmm(0, 1, 2), kernel("gemm", 20, 1)])).calls
    calls = [recorded(number, "aten::addmm", (4,), (2, 8), (8, 4)) for number in (1, 2)]
    found = kernels_of_calls(calls, launches)
    assert [found[number].kernels for number in (1, 2)] == [("gemm",), ("gemm",)]
    assert not found[1].is_same_call


def test_a_trace_without_shapes_is_matched_by_name(tmp_path: Path) -> None:
    events = [op("aten::relu", 0, 5, External_id=1), kernel("relu_kernel", 20, 1)]
    launches = read_launches(write(tmp_path, events)).calls
    assert kernels_of_calls([recorded(1, "aten::relu", (3,))], launches)[1].kernels == ("relu_kernel",)


def test_reports(tmp_path: Path) -> None:
    path = write(tmp_path, [addmm(0, 1, 2), kernel("gemm", 20, 1), kernel("gemm", 24, 1)])
    text = kernel_report(path, "", "text", "en")
    assert "1 operators launched 2 kernels on cuda" in text
    assert "aten::addmm  4 2x8 8x4  float32" in text
    assert "    gemm  2x" in text
    assert "下发" in kernel_report(path, "", "text", "zh")
    (row,) = csv.DictReader(io.StringIO(kernel_report(path, "", "csv", "en")))
    assert (row["operator"], row["kernels"]) == ("aten::addmm", "gemm | gemm")
    (fields,) = json.loads(kernel_report(path, "addmm", "json", "en"))
    assert fields["microseconds"] == 4
    assert kernel_report(path, "conv", "text", "en") == "no operator launched a kernel\n"


def test_the_calls_of_a_record_with_their_kernels(tmp_path: Path) -> None:
    trace = write(tmp_path, [addmm(0, 1, 2), kernel("=gemm", 20, 1)])
    writer = RecordWriter(tmp_path / "gpu.h5", RecordHeader(Kept.TENSORS, "train.py", "cuda", "2.13"))
    writer.write(recorded(1, "aten::addmm", (4,), (2, 8), (8, 4)))
    writer.write(recorded(2, "aten::relu", (4,)))
    writer.close()
    (fields,) = json.loads(recorded_report(tmp_path / "gpu.h5", trace, "", "json"))
    assert (fields["number"], fields["kernels"], fields["same_call"]) == (1, ["=gemm"], True)
    assert recorded_report(tmp_path / "gpu.h5", trace, "", "text") == "1  aten::addmm\n    =gemm\n"
    (row,) = csv.DictReader(io.StringIO(recorded_report(tmp_path / "gpu.h5", trace, "", "csv")))
    assert row["kernels"] == "'=gemm"  # no spreadsheet takes it for a formula


def test_a_table_tells_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("-----\n Name  Self CPU\n-----\n", "utf-8")
    with pytest.raises(InputError, match="only a trace tells"):
        read_launches(tmp_path / "table.txt")


@real
def test_every_kernel_of_a_real_npu_belongs_to_an_operator() -> None:
    path = TRACES / "ascend_trace_view.json"
    flows = [event for event in json.loads(path.read_text()) if event.get("cat") == "async_npu"]
    launches = read_launches(path)
    kernels = [name for call in launches.calls for name, _ in call.kernels]
    assert launches.device == "npu"
    assert len(kernels) == sum(event["ph"] == "f" for event in flows) == 274
    added = {use.kernels for use in kernel_uses(launches.calls) if use.operator == "aten::zero_"}
    assert added == {("aclnnInplaceZero_ZerosLikeAiCore_ZerosLike",)}


@real
@pytest.mark.parametrize("name", ["h100", "mi300"])
def test_one_operator_has_other_kernels_on_another_device(name: str) -> None:
    (path,) = TRACES.glob(f"{name}_*")
    products = [use for use in kernel_uses(read_launches(path).calls) if use.operator == "aten::addmm"]
    kernels = {kernel for use in products for kernel in use.kernels}
    assert any(("sm90" in kernel, "Cijk" in kernel)[name == "mi300"] for kernel in kernels)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path, [addmm(0, 1, 2), kernel("gemm", 20, 1)])
    assert main(["record", "kernels", str(trace), "--lang", "en"]) == 0
    assert "1 operators launched 1 kernels on cuda" in capsys.readouterr().out
    assert main(["record", "kernels", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
