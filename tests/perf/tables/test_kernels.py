"""Tables of kernels: every generation's heads, totals, damage."""

from __future__ import annotations

import csv
import gzip
from decimal import Decimal
from pathlib import Path

import pytest

from tests.perf.real_traces import real_trace
from torchferry.errors import InputError
from torchferry.perf.tables.kernels import KernelTable, read_kernels
from torchferry.traces.columns import EventKind

OLD = (
    "Name,Type,Accelerator Core,Start Time,Duration(us),Wait Time(us),Block Dim,Input Shapes,Input Data Types"
)
NEW = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID"
)
SUMMARY = (
    "Model ID,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time,Task Duration(us),Task Wait Time(us),"
    "Block Dim,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"
)


def table(folder: Path, *lines: str) -> KernelTable:
    path = folder / "kernel_details.csv"
    path.write_text("\n".join(lines) + "\n")
    return read_kernels(path)


@pytest.mark.parametrize(
    "lines",
    [
        (OLD, 'add_1,Add,AI_CORE,1736413971558972.912\t,26.780,1.5,40,"""2,3;2,3""",FLOAT;FLOAT'),
        (
            NEW,
            '7,0,42,1,2,add_1,Add,dynamic,AI_CORE,"1736413971558972.912\t",26.780,1.5,40,0,NO,"""2,3;2,3""",'
            "FLOAT;FLOAT,ND;ND,N/A,N/A,N/A,N/A",
        ),
        (SUMMARY, '42,1,2,add_1,Add,AI_CORE,1736413971558972.912,26.780,1.5,40,"2,3;2,3",FLOAT;FLOAT,,,,'),
    ],
    ids=["old", "new", "summary"],
)
def test_all_generations_tell_the_same(tmp_path: Path, lines: tuple[str, ...]) -> None:
    read = table(tmp_path, *lines)
    (group,) = read.groups
    assert (group.name, group.type, group.core) == ("add_1", "Add", "AI_CORE")
    assert (group.calls, group.seconds) == (1, 26.78e-6)
    assert (group.signature.input_shapes, group.signature.input_dtypes) == ("2,3;2,3", "FLOAT;FLOAT")
    assert read.start.tolist() == [1736413971558972912]  # to the nanosecond


def test_steps_are_told_apart_where_the_table_does(tmp_path: Path) -> None:
    assert table(tmp_path, OLD, "a,Add,AI_CORE,1.0,2.0,0,1,,").steps == []
    row = "{},0,1,1,2,a,Add,dynamic,AI_CORE,1.0,2.0,0,1,0,NO,,,,,,,"
    assert table(tmp_path, NEW, row.format(4), row.format(5), row.format("")).steps == [4, 5]


def test_steps_that_are_no_numbers_are_no_steps(tmp_path: Path) -> None:
    row = "{},0,1,1,2,a,Add,dynamic,AI_CORE,1.0,2.0,0,1,0,NO,,,,,,,"
    read = table(tmp_path, NEW, *(row.format(step) for step in ("--5", "٣", "9" * 30, "x", "7.0", " 8 ")))
    assert read.step.tolist() == [-1, -1, -1, -1, 7, 8]


def test_communication_and_copies_are_no_computation(tmp_path: Path) -> None:
    read = table(
        tmp_path,
        OLD,
        "hcom_allReduce__1,hcom_allReduce_,COMMUNICATION,0,10,0,0,,",
        "MatMul1,MatMulV2,AI_CORE,5,10,0,0,,",
        "MEMCPY_ASYNC,N/A,SDMA,30,1,0,0,,",
    )
    totals = {
        kind: read.busy(kind).total for kind in (EventKind.COMPUTE, EventKind.COMMUNICATION, EventKind.COPY)
    }
    assert totals == {EventKind.COMPUTE: 10_000, EventKind.COMMUNICATION: 10_000, EventKind.COPY: 1_000}


def test_rows_that_are_cut_or_have_no_duration_are_left_out_with_a_note(tmp_path: Path) -> None:
    read = table(tmp_path, OLD, "a,Add,AI_CORE,1.0,2.0,0,1,,", "b,Add,AI_CORE,1.0,N/A,0,1,,", "c,Add,AI_")
    assert len(read) == 1
    assert [note.en for note in read.notes] == ["kernel_details.csv: 2 damaged rows were skipped."]


def test_a_packed_table_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    rows = "".join(f"k{number},Add,AI_CORE,{number}.5,2.0,0,1,,\n" for number in range(5000))
    packed = gzip.compress(f"{OLD}\n{rows}".encode())
    whole, cut = tmp_path / "whole.csv.gz", tmp_path / "cut.csv.gz"
    whole.write_bytes(packed)
    cut.write_bytes(packed[: len(packed) // 2])
    assert len(read_kernels(whole)) == 5000
    read = read_kernels(cut)
    assert 1000 < len(read) < 5000
    assert "is truncated" in read.notes[0].en


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n", "columns missing: 'Name', 'Duration(us)'"),
        ("", "columns missing"),
        (OLD + "\n", "holds no kernels"),
        (OLD + "\na,Add,AI_CORE,1,N/A,0,1,,\n", "no kernel with a duration"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        read_kernels(path)


def test_totals_of_a_real_table_are_those_of_its_text() -> None:
    path = real_trace("ascend_kernel_details.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    read = read_kernels(path)
    assert len(read) == len(rows)
    assert int(read.duration.sum()) == sum(Decimal(row["Duration(us)"]) for row in rows) * 1000
    flash = [row for row in rows if row["Type"] == "FlashAttentionScore"]
    assert sum(group.calls for group in read.groups if group.type == "FlashAttentionScore") == len(flash)
    assert read.steps == [19]
