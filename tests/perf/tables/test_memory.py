"""Tables of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.errors import InputError
from torchferry.perf.tables.memory import read_memory

OPERATORS = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),"
    "Allocation Total Allocated(MB),Allocation Total Reserved(MB),Allocation Total Active(MB),"
    "Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),Stream Ptr,Device Type\n"
    "aten::mm,1024,1000.0\t,1010.0\t,,10.0,,3,20,3,2.5,20,2.5,1,NPU:0\n"
    "aten::add,512,1005.5\t,\t,,,,3.5,20,3.5,,,,1,NPU:0\n"
)
WITHOUT_RELEASE_TIME = (
    "Name,Size(KB),Allocation Time(us),Duration(us),Device Type\naten::mm,4,5.0,2.5,NPU:0\n"
)
RECORD = (
    "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
    "PTA,1001.0\t,3,20,3,1,NPU:0\n"
    "PTA+GE,1002.0\t,5,21,3,1,NPU:0\n"
    "PTA+GE,1001.0\t,4,21,3,1,NPU:0\n"
    "APP,1003.0\t,,99,,,NPU:0\n"
)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_curve_goes_up_with_allocations_and_down_with_releases(tmp_path: Path) -> None:
    table = read_memory(written(tmp_path / "operator_memory.csv", OPERATORS))
    curve = table.curves["npu:0"]
    assert curve.start.tolist() == [1_000_000, 1_005_500, 1_010_000]
    assert [size / 2**20 for size in curve.allocated.tolist()] == [3, 3.5, 2.5]
    assert curve.changed_by.tolist() == [2**20, 2**19, -(2**20)]
    assert table.peak == 3.5 * 2**20
    assert curve.reserved.max() == 20 * 2**20


def test_who_held_memory_at_the_peak(tmp_path: Path) -> None:
    table = read_memory(written(tmp_path / "operator_memory.csv", OPERATORS))
    assert [(use.operator, use.total, use.kept) for use in table.at_peak()] == [
        ("aten::mm", 2**20, 0),
        ("aten::add", 2**19, 2**19),
    ]


def test_the_record_has_the_better_curve(tmp_path: Path) -> None:
    operators = written(tmp_path / "operator_memory.csv", OPERATORS)
    record = written(tmp_path / "memory_record.csv", RECORD)
    table = read_memory(operators, record)
    curve = table.curves["npu:0"]  # the framework's and the graph engine's memory, in order
    assert [size // 2**20 for size in curve.allocated.tolist()] == [4, 5]
    assert curve.start.tolist() == [1_001_000, 1_002_000]
    assert table.uses()[0].operator == "aten::mm"


def test_by_the_clock_of_a_trace(tmp_path: Path) -> None:
    table = read_memory(written(tmp_path / "operator_memory.csv", OPERATORS)).since(1_000_000)
    assert table.curves["npu:0"].start.tolist() == [0, 5_500, 10_000]
    assert [use.operator for use in table.at_peak()] == ["aten::mm", "aten::add"]


def test_a_table_without_release_times_has_durations(tmp_path: Path) -> None:
    table = read_memory(written(tmp_path / "operator_memory.csv", WITHOUT_RELEASE_TIME))
    assert (table.start.tolist(), table.end.tolist()) == ([5000], [7500])


def test_nothing_recorded(tmp_path: Path) -> None:
    empty = written(tmp_path / "operator_memory.csv", OPERATORS.splitlines()[0] + "\n")
    with pytest.raises(InputError, match="profile_memory=True"):
        read_memory(empty)
