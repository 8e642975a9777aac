"""Tables of operators and of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.errors import InputError
from torchferry.perf.tables.operators import read_operators, read_steps

PRINTED = """\
epoch 1
---------  ----------  -----------  -----------  ------------  ----------
     Name    Self CPU    CPU total    Self CUDA    # of Calls  Input Shapes
---------  ----------  -----------  -----------  ------------  ----------
 aten::mm    10.000us     12.000us      1.500ms             3  [[2, 3], [3, 4]]
aten::add     1.000us      1.000us      0.000us             1  [[2, 3], [2, 3]]
---------  ----------  -----------  -----------  ------------  ----------
Self CPU time total: 11.000us
"""
DETAILS = (
    "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),"
    "Device Total Duration(us)\n"
    'aten::mm,"""2,3;3,4""",,10,12,20.5,20.5\n'
    'aten::mm,"""2,3;3,4""",,11,12,20.5,20.5\n'
    'aten::mm,"""9,3;3,4""",,1,1,2,2\n'
)
STATISTIC = (
    "Device_id,OP Type,Core Type,Count,Total Time(us),Avg Time(us),Ratio(%)\n0,Add,AI_CORE,10,300.5,30,100\n"
)
STEPS = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
    "0,3,100.5,20,5,25,30.25,0,0\n0,4,100,20,5,25,30,0,0\n"
)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_torch_prints(tmp_path: Path) -> None:
    table = read_operators(written(tmp_path / "log.txt", PRINTED))
    assert table.device == "cuda"
    first = table.rows[0]
    assert (first.operator, first.shapes, first.calls) == ("aten::mm", "[[2, 3], [3, 4]]", 3)
    assert (first.host_seconds, first.device_seconds) == (10e-6, 1.5e-3)


def test_calls_of_the_same_shapes_are_added_up(tmp_path: Path) -> None:
    first, second = read_operators(written(tmp_path / "operator_details.csv", DETAILS)).rows
    assert (first.shapes, first.calls, first.device_seconds) == ("2,3;3,4", 2, pytest.approx(41e-6))
    assert first.host_seconds == pytest.approx(21e-6)
    assert second.shapes == "9,3;3,4"


def test_types_of_kernels(tmp_path: Path) -> None:
    table = read_operators(written(tmp_path / "op_statistic.csv", STATISTIC))
    assert not table.has_host_time
    assert [(row.operator, row.calls, row.device_seconds) for row in table.rows] == [("Add", 10, 300.5e-6)]


def test_steps(tmp_path: Path) -> None:
    table = read_steps(written(tmp_path / "step_trace_time.csv", STEPS))
    assert table.number.tolist() == [3, 4]
    assert table.free.tolist() == [30_250, 30_000]
    assert table.seconds == pytest.approx(300.75e-6)  # what overlaps is counted once


def test_other_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a table of operators"):
        read_operators(written(tmp_path / "notes.txt", "hello\n"))
    with pytest.raises(InputError, match="not a table of operators"):
        read_operators(written(tmp_path / "x.csv", "a,b\n"))
