"""From paths to runs: what belongs together is joined, what does not is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.oplog.making import LogWriter, tensor
from tests.perf.real_traces import FAST_LOADER, KERNEL_TABLE, SLOW_LOADER, VENDORS_TIMELINE, real_trace
from torchferry.errors import InputError
from torchferry.perf.opening import open_runs

START = 1736413971000000  # microseconds since 1970
KERNELS = "Name,Type,Accelerator Core,Start Time(us),Duration(us)\nadd_1,Add,AI_CORE,{start}.0,26.78\n"
MEMORY = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
    "Device Type\naten::mm,1024,{start}.5,,3,20,{device}\n"
)
STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n1,10,0,0,0,5\n"
DETAILS = "Name,Host Self Duration(us),Device Self Duration(us)\naten::mm,1,2\n"


def trace(
    path: Path,
    start: int = START,
    *,
    rank: int | None = None,
    process: int = 100,
    device: str = "npu",
    **about: Any,
) -> Path:
    """One operator with one kernel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    runtime = {"npu": "enqueue", "cuda": "cuda_runtime"}.get(device)
    events: list[dict[str, Any]] = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": process,
            "tid": 1,
            "ts": str(start),
            "dur": 90,
        }
    ]
    if runtime:
        events += [
            {
                "ph": "X",
                "cat": "kernel",
                "name": "gemm",
                "pid": 0,
                "tid": 7,
                "ts": str(start + 50),
                "dur": 10,
            },
            {
                "ph": "s",
                "cat": f"async_{device}",
                "name": "f",
                "id": 1,
                "pid": process,
                "tid": 1,
                "ts": str(start + 5),
            },
            {
                "ph": "f",
                "cat": f"async_{device}",
                "name": "f",
                "id": 1,
                "pid": 0,
                "tid": 7,
                "ts": str(start + 50),
            },
        ]
    if rank is not None:
        about["distributedInfo"] = {"rank": rank, "world_size": 2}
    path.write_text(json.dumps({**about, "traceEvents": events}))
    return path


def vendors_folder(folder: Path, start: int = START, *, rank: int | None = None, process: int = 100) -> Path:
    """As a vendor's profiler leaves it."""
    output = folder / "host_1_2026_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    trace(output / "trace_view.json", start, process=process)
    (output / "kernel_details.csv").write_text(KERNELS.format(start=start + 50))
    (output / "operator_memory.csv").write_text(MEMORY.format(start=start + 2, device="NPU:0"))
    (output / "step_trace_time.csv").write_text(STEPS)
    (output / "operator_details.csv").write_text(DETAILS)
    (output / "communication.json").write_text('{"step1": {}}')
    name = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
    (output.parent / name).write_text("{}")
    raw = output.parent / "PROF_0001" / "mindstudio_profiler_output"
    trace(raw / "msprof_1.json", start)
    (raw / "op_summary_1.csv").write_text(KERNELS.format(start=start))
    return folder


def profile_folder(folder: Path, ranks: int, lost: int = 0) -> Path:
    """As `ferry profile` leaves it."""
    entries = []
    for rank in range(ranks):
        name = f"trace.rank{rank}.json"
        if rank < ranks - lost:
            trace(folder / name, rank=rank, process=rank)
        entries.append({"rank": rank, "trace": name, "memory_limit": 7})
    facts = {
        "format": "torchferry-profile",
        "version": 1,
        "vendor": "ascend",
        "device": "npu",
        "ranks": entries,
    }
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


def test_a_trace(tmp_path: Path) -> None:
    (run,) = open_runs([trace(tmp_path / "a.json")])
    assert run.sources == (str(tmp_path / "a.json"),)
    assert run.vendor is not None
    assert (run.device, run.vendor.name) == ("npu", "ascend")


def test_a_folder_of_ferry_profile(tmp_path: Path) -> None:
    runs = open_runs([profile_folder(tmp_path / "prof", 2)])
    assert [run.rank_facts["rank"] for run in runs] == [0, 1]
    assert all(run.trace and run.profile["vendor"] == "ascend" and run.vendor for run in runs)


def test_ranks_that_a_record_names_belong_together_whatever_their_clocks_say(tmp_path: Path) -> None:
    folder = profile_folder(tmp_path / "prof", 2)
    trace(folder / "trace.rank1.json", START + 3_600_000_000, rank=1, process=1)
    assert len(open_runs([folder])) == 2


def test_a_rank_without_a_trace_is_named(tmp_path: Path) -> None:
    (run,) = open_runs([profile_folder(tmp_path / "prof", 2, lost=1)])
    assert [note.en for note in run.notes] == ["prof: rank 1 left no trace and was not analyzed."]
    with pytest.raises(InputError, match="all of its traces are missing"):
        open_runs([profile_folder(tmp_path / "empty", 1, lost=1)])


def test_what_ferry_profile_keeps_of_a_vendors_profiler_is_read_with_its_tables(tmp_path: Path) -> None:
    folder = profile_folder(tmp_path / "prof", 2)
    (folder / "trace.rank0.json").unlink()
    vendors_folder(folder, rank=0, process=0)
    (folder / "host_1_2026_ascend_pt").rename(folder / "trace.rank0.json")
    first, second = open_runs([folder])
    assert first.trace and first.kernels and first.memory and first.rank_facts["rank"] == 0
    assert second.trace and second.kernels is None


def test_a_vendors_folder_is_one_run_with_all_its_tables(tmp_path: Path) -> None:
    (run,) = open_runs([vendors_folder(tmp_path)])
    assert run.trace and run.kernels and run.memory and run.step_table and run.operators
    assert len(run.kernels) == 1  # not those of the raw data
    assert run.memory.curves["npu:0"].start.tolist() == [2_500]  # since the trace's beginning
    output = tmp_path / "host_1_2026_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    (same,) = open_runs([output])
    assert sorted(same.sources) == sorted(run.sources)


def test_raw_data_are_read_where_there_is_nothing_else(tmp_path: Path) -> None:
    vendors_folder(tmp_path)
    raw = tmp_path / "host_1_2026_ascend_pt" / "PROF_0001"
    (run,) = open_runs([raw])
    assert run.trace and run.kernels


def test_ranks_of_a_vendors_run(tmp_path: Path) -> None:
    vendors_folder(tmp_path / "a", START + 1000, rank=1, process=7)
    vendors_folder(tmp_path / "b", START, rank=0, process=8)
    assert [run.rank_facts["rank"] for run in open_runs([tmp_path])] == [0, 1]


def test_traces_of_a_handler_are_one_run_per_process(tmp_path: Path) -> None:
    trace(tmp_path / "host_11.123.pt.trace.json", rank=1, process=11)
    trace(tmp_path / "host_10.123.pt.trace.json", rank=0, process=10)
    assert [run.trace.rank for run in open_runs([tmp_path]) if run.trace] == [0, 1]


def test_tables_go_with_the_trace_that_is_named_with_them(tmp_path: Path) -> None:
    table = tmp_path / "other" / "kernel_details.csv"
    table.parent.mkdir()
    table.write_text(KERNELS.format(start=START + 50))
    (run,) = open_runs([trace(tmp_path / "a.json"), table])
    assert run.trace and run.kernels
    (run,) = open_runs([trace(tmp_path / "in" / "a.json").parent, table])
    assert run.trace and run.kernels


def test_tables_alone(tmp_path: Path) -> None:
    table = tmp_path / "kernel_details.csv"
    table.write_text(KERNELS.format(start=START))
    (run,) = open_runs([table])
    assert run.trace is None and run.kernels is not None


def test_logs_alone_and_beside_a_trace(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("Add", [tensor([2, 3])])
    log.write(tmp_path / "log" / "plog-1.log")
    (run,) = open_runs([tmp_path / "log"])
    assert run.oplog is not None and run.trace is None
    first, second = open_runs([profile_folder(tmp_path / "prof", 2), tmp_path / "log"])
    assert first.oplog is not None and second.oplog is None
    assert any("cover all processes" in note.en for note in first.notes)
    with pytest.raises(InputError, match="no line about operators"):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "x.log").write_text("hello")
        open_runs([tmp_path / "other"])


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"device": "cuda", "process": 2}, r"from different devices \(npu, cuda\)"),
        ({"rank": 0, "process": 2}, "both from rank 0"),
        ({"rank": 1, "process": 2, "start": START + 3_600_000_000}, "they are 3,600.0 seconds apart"),
        ({"process": 2, "start": START - 3_600_000_000}, "they are 3,600.0 seconds apart"),
        ({"process": 100}, "both from process 100"),
        ({"process": 100, "trace_id": "x"}, "the same trace"),
    ],
)
def test_traces_of_different_runs_are_refused(tmp_path: Path, others: dict[str, Any], problem: str) -> None:
    rank = {"rank": 0} if "rank" in others else {}
    first = trace(tmp_path / "a.json", **rank, **({"trace_id": "x"} if "trace_id" in others else {}))
    second = trace(tmp_path / "b.json", **others)
    with pytest.raises(InputError, match=problem) as error:
        open_runs([first, second])
    assert "a.json" in str(error.value) and "b.json" in str(error.value) and "--baseline" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("kernel_details.csv", KERNELS.format(start=START + 9_000_000), "9.0 seconds apart"),
        (
            "operator_memory.csv",
            MEMORY.format(start=START - 9_000_000, device="NPU:0"),
            "9.0 seconds apart",
        ),
        ("operator_memory.csv", MEMORY.format(start=START + 5, device="GCU:0"), "from the device 'npu'"),
    ],
)
def test_tables_of_another_run_are_refused(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=problem):
        open_runs([trace(tmp_path / "a.json"), tmp_path / name])


def test_two_tables_of_one_sort_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(KERNELS.format(start=START))
    with pytest.raises(InputError, match=r"a\.csv' and '.*b\.csv' are each a table of kernels"):
        open_runs([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_a_table_among_several_traces_is_refused(tmp_path: Path) -> None:
    trace(tmp_path / "a.json", rank=0)
    trace(tmp_path / "b.json", rank=1)
    (tmp_path / "kernel_details.csv").write_text(KERNELS.format(start=START))
    with pytest.raises(InputError, match="lies beside 2 traces"):
        open_runs([tmp_path])


def test_tables_that_may_be_of_another_run_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel_details.csv").write_text(KERNELS.format(start=START))
    with pytest.raises(InputError, match="does not tell whether"):
        open_runs([tmp_path])


def test_two_profiles_are_refused(tmp_path: Path) -> None:
    folders = [profile_folder(tmp_path / name, 1) for name in ("a", "b")]
    with pytest.raises(InputError, match="different runs"):
        open_runs(folders)


def test_unknown_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    for name in ("notes.md", "table.csv"):
        with pytest.raises(InputError, match=f"{name}' can't be analyzed; give a trace"):
            open_runs([tmp_path / name])
    with pytest.raises(InputError, match="holds no trace, table or log"):
        open_runs([tmp_path])
    with pytest.raises(InputError, match="no such file or folder"):
        open_runs([tmp_path / "nowhere"])


def test_a_record_that_is_no_longer_understood(tmp_path: Path) -> None:
    folder = profile_folder(tmp_path / "prof", 1)
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "version": 2}))
    with pytest.raises(InputError, match="update TorchFerry"):
        open_runs([folder])


def test_a_trace_that_was_cut_says_so_in_the_run(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(5):
        builder.op("aten::mm", number * 10, 5)
    path = builder.write(tmp_path / "a.json")
    path.write_text(path.read_text()[:-40])
    (run,) = open_runs([path])
    assert "ends in the middle" in run.notes[0].en


def test_real_traces_of_different_runs_are_refused() -> None:
    with pytest.raises(InputError, match="seconds apart"):
        open_runs([real_trace(SLOW_LOADER), real_trace(FAST_LOADER)])
    with pytest.raises(InputError, match="seconds apart"):
        open_runs([real_trace(VENDORS_TIMELINE), real_trace(KERNEL_TABLE)])
