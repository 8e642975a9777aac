"""The emulated CANN's msprof: from what the libraries have recorded to the tables and the timeline that the plugin reads."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torchferry.emulate.cann.msprof.command import main
from torchferry.emulate.cann.msprof.records import kernel_of, tensors_in
from torchferry.emulate.toolkits import PYTHON, TOOLKIT, EmulatedProgram, make_programs, put_on_path

DAY = 1_795_031_793_000_000_000  # nanoseconds since 1970, when the recorder's clock was 1,000,000
START = DAY - 1_000_000


@pytest.fixture(scope="module", autouse=True)
def nobody_waits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torchferry.emulate.cann.msprof.command._TIME_TO_BE_SEEN", 0)
        yield


def profile_folder(folder: Path, tasks: list[str], calls: list[str], data_types: int = 0x2) -> Path:
    """As the libraries leave it."""
    (folder / "host/data").mkdir(parents=True)
    (folder / "device_0/data").mkdir(parents=True)
    about = {"pid": "7", "devices": "0", "dataTypeConfig": data_types}
    (folder / "host/info.json").write_text(json.dumps(about))
    start = {"collectionTimeBegin": f"{DAY // 1000}.000", "clockMonotonicRaw": "1000000"}
    (folder / "host/start_info").write_text(json.dumps(start))
    (folder / "host/data/calls.tsv").write_text("".join(f"{call}\n" for call in calls))
    (folder / "device_0/data/tasks.tsv").write_text("".join(f"{task}\n" for task in tasks))
    (folder / "device_0/data/memory.tsv").write_text("1500000\t2048\n")
    return folder


def task(
    number: int, kind: str, name: str, start: int, end: int, details: str, *, stream: int = 0, waited: int = 0
) -> str:
    """Times in microseconds."""
    fields = (
        number,
        kind,
        name,
        stream,
        70,
        start * 1000 - 900,
        start * 1000 - 800,
        start * 1000,
        end * 1000,
        waited,
        details,
    )
    return "\t".join(map(str, fields))


TASKS = [
    task(2, "KERNEL", "aclnnRelu", 1130, 1140, "0:Float:8,4;1:Float:8,4"),
    task(1, "KERNEL", "aclnnAddmm", 1100, 1120, "0:Half:4;1:Half:8,16;2:Half:16,4;5:Half:8,4"),
    task(
        3,
        "COMMUNICATION",
        "HcclAllReduce",
        1135,
        1175,
        "group|of 2|0|2|250000|fp32|1000000|",
        stream=1,
        waited=30000,
    ),
    task(4, "MEMCPY", "host to device", 1180, 1190, "4096"),
    task(5, "EVENT_WAIT", "", 1190, 1200, ""),
]
CALLS = [
    "aclnnAddmm\t70\t1099000\t1099500",
    "aclnnAddmm\t70\t1129000\t1130000",
    "aclrtMalloc\t70\t1000000\t1000100",
]


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    (path,) = (folder / "mindstudio_profiler_output").glob(f"{table}_*.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def timeline(folder: Path) -> list[dict[str, Any]]:
    (path,) = (folder / "mindstudio_profiler_output").glob("msprof_*.json")
    events: list[dict[str, Any]] = json.loads(path.read_text())
    return events


@pytest.fixture(scope="module")
def exported(nobody_waits: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = profile_folder(tmp_path_factory.mktemp("profile") / "PROF_1", TASKS, CALLS)
    assert main(["--export=on", f"--output={folder}"]) == 0
    assert main(["--analyze=on", f"--output={folder}"]) == 0
    return folder


def test_kernels_have_names_cores_and_tensors(exported: Path) -> None:
    first, second, third = rows(exported, "op_summary")
    assert first["Op Name"] == "aclnnAddmm_MatMulV2AiCore_MatMulV2"
    assert (first["OP Type"], first["Task Type"]) == ("MatMulV2", "AI_CORE")
    assert (second["OP Type"], second["Task Type"], second["Task ID"]) == ("Relu", "AI_VECTOR_CORE", "2")
    assert first["Input Shapes"] == '"8,16;16,4;4"'  # what is added comes last
    assert (first["Input Data Types"], first["Output Shapes"]) == ("FLOAT16;FLOAT16;FLOAT16", '"8,4"')
    assert (third["Op Name"].split("__")[0], third["Task Type"]) == ("hcom_allReduce", "COMMUNICATION")


def test_times_are_of_the_day_and_exact(exported: Path) -> None:
    first, second, third = rows(exported, "op_summary")
    assert first["Task Start Time(us)"] == f"{(START + 1_100_000) // 1000}.000\t"
    assert [row["Task Duration(us)"] for row in (first, second, third)] == ["20.000", "10.000", "40.000"]
    assert [row["Task Wait Time(us)"] for row in (first, second, third)] == ["0.000", "10.000", "0.000"]


def test_without_shapes_there_are_no_columns_of_them(tmp_path: Path) -> None:
    folder = profile_folder(tmp_path / "PROF_1", TASKS, [], data_types=0x800)
    assert main(["--export=on", f"--output={folder}"]) == 0
    assert "Input Shapes" not in rows(folder, "op_summary")[0]


def test_statistics_add_up(exported: Path) -> None:
    kernels = {row["OP Type"]: row for row in rows(exported, "op_statistic")}
    assert kernels["MatMulV2"]["Total Time(us)"] == "20.000" and kernels["MatMulV2"]["Ratio(%)"] == "66.667"
    calls = {(row["Level"], row["API Name"]): row for row in rows(exported, "api_statistic")}
    matmul = calls["AscendCL", "aclnnAddmm"]
    assert [matmul[name] for name in ("Count", "Time(us)", "Avg(us)", "Variance")] == [
        "2",
        "1.500",
        "0.750",
        "0.062",
    ]
    assert calls["Node", "launch"]["Count"] == "2"
    assert [row["kernel_type"] for row in rows(exported, "task_time")] == [
        "KERNEL_AICORE", "KERNEL_AIVEC", "COMMUNICATION", "MEMCPY_ASYNC", "EVENT_WAIT",
    ]  # fmt: skip
    assert [row["memory(KB)"] for row in rows(exported, "npu_mem")] == ["2.0"]


def test_each_task_has_an_arrow_from_the_call_that_launched_it(exported: Path) -> None:
    events = timeline(exported)
    spans = {(event["pid"], event["tid"], event["ts"]): event for event in events if event["ph"] == "X"}
    ends: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") == "HostToDevice":
            ends.setdefault(event["id"], {})[event["ph"]] = spans[event["pid"], event["tid"], event["ts"]]
    assert len(ends) == len(TASKS)
    pairs = {pair["f"]["name"].split("__")[0]: pair["s"]["name"] for pair in ends.values()}
    assert pairs == {
        "aclnnAddmm_MatMulV2AiCore_MatMulV2": "Node@launch",
        "aclnnRelu_ReluAiCore_Relu": "Node@launch",
        "hcom_allReduce": "Communication@HcclAllReduce",
        "MEMCPY_ASYNC": "Runtime@MemcpyAsync",
        "EVENT_WAIT": "Runtime@StreamWaitEvent",
    }


def test_overlap_is_told_apart(exported: Path) -> None:
    found: dict[str, list[float]] = {}
    for event in timeline(exported):
        if event["ph"] == "X" and not event["args"]:
            found.setdefault(event["name"], []).append(event["dur"])
    assert found == {
        "Computing": [20.0, 10.0],
        "Communication": [40.0],
        "Communication(Not Overlapped)": [35.0],
        "Free": [10.0],
    }


def test_what_the_program_marks_has_rows_of_its_own(tmp_path: Path) -> None:
    """It is no work, and must not be taken for it."""
    marks = [task(8, "RANGE", "epoch", 1095, 1150, ""), task(9, "HOST_RANGE", "loading", 1090, 1090, "")]
    folder = profile_folder(tmp_path / "PROF_1", [*TASKS, *marks], [])
    assert main(["--export=on", f"--output={folder}"]) == 0
    events = timeline(folder)
    (process,) = (
        event["pid"] for event in events if event["ph"] == "M" and event["args"].get("name") == "MSTX"
    )
    shown = [
        (event["name"], event["tid"] < 0)
        for event in events
        if event["ph"] == "X" and event["pid"] == process
    ]
    assert shown == [("loading", False), ("epoch", False), ("epoch", True)]
    assert len(rows(folder, "task_time")) == len(TASKS)


def test_collectives_tell_waiting_from_moving(exported: Path) -> None:
    ((name, told),) = json.loads((exported / "analyze/communication.json").read_text()).items()
    assert name.endswith("_1_1@group|of 2")
    times, bandwidth = told["Communication Time Info"], told["Communication Bandwidth Info"]["HCCS"]
    assert (times["Elapse Time(ms)"], times["Wait Time(ms)"], times["Transit Time(ms)"]) == (0.04, 0.03, 0.01)
    assert (bandwidth["Transit Size(MB)"], bandwidth["Bandwidth(GB/s)"]) == (1.0, 100.0)
    ((_, links),) = json.loads((exported / "analyze/communication_matrix.json").read_text()).items()
    assert list(links) == ["0-1"]


def test_an_empty_profile_has_tables_without_rows(tmp_path: Path) -> None:
    folder = profile_folder(tmp_path / "PROF_1", [], [])
    assert main(["--export=on", f"--output={folder}"]) == 0
    assert main(["--analyze=on", f"--output={folder}"]) == 0
    assert rows(folder, "op_summary") == [] and not (folder / "analyze").exists()


def test_a_folder_of_others_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--export=on", f"--output={tmp_path}"]) == 1
    assert "is no profile of the emulated CANN" in capsys.readouterr().err


def test_help_promises_no_database(capsys: pytest.CaptureFixture[str]) -> None:
    """The plugin looks there for what can be written."""
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--type" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "type_", "core"),
    [
        ("aclnnAdd", "Add", "AI_VECTOR_CORE"),
        ("aclnnInplaceAdds", "Add", "AI_VECTOR_CORE"),
        ("aclnnBatchMatMul", "BatchMatMulV2", "AI_CORE"),
        ("aclnnConvolution", "Conv2D", "AI_CORE"),
        ("aclnnFlashAttentionScore", "FlashAttentionScore", "MIX_AIC"),
        ("aclnnGtScalar", "Greater", "AI_VECTOR_CORE"),
        ("aclnnAbs", "Abs", "AI_VECTOR_CORE"),
        ("aclnnForeachAddList", "ForeachAddList", "AI_VECTOR_CORE"),
        ("aclnnNobodyKnows", "NobodyKnows", "AI_VECTOR_CORE"),
    ],
)
def test_types_and_cores(function: str, type_: str, core: str) -> None:
    kernel = kernel_of(function)
    assert (kernel.type, kernel.core) == (type_, core)


@pytest.mark.parametrize(
    ("function", "called", "ins", "outs"),
    [
        ("aclnnAdd", "0:Float:2;1:Float:3;3:Float:4", ["2", "3"], ["4"]),
        ("aclnnInplaceAdd", "0:Float:2;1:Float:3", ["2", "3"], ["2"]),
        ("aclnnBatchNorm", "0:Float:2;1:Float:3;8:Float:4;9:Float:5;10:Float:6", ["2", "3"], ["4", "5", "6"]),
        ("aclnnConvolutionBackward", "0:Float:2;1:Float:3;2:Float:4;12:Float:5;13:Float:6", ["2", "3", "4"], ["5", "6"]),
        ("aclnnMaxPool2dWithMask", "0:Float:2;6:Float:3;7:Byte:4", ["2"], ["3", "4"]),
        ("aclnnNobodyKnows", "0:Float:2;1:Float:3", ["2", "3"], []),
    ],
)  # fmt: skip
def test_what_comes_out(function: str, called: str, ins: list[str], outs: list[str]) -> None:
    inputs, outputs = tensors_in(function, called)
    assert [tensor.shape for tensor in inputs] == ins
    assert [tensor.shape for tensor in outputs] == outs


def test_formats_are_the_plugins_by_dimensions() -> None:
    (image, matrix), _ = tensors_in("aclnnNobodyKnows", "0:BFloat16:1,2,3,4;1:Long:2,3")
    assert (image.format, image.dtype) == ("NCHW", "DT_BF16")
    assert (matrix.format, matrix.dtype) == ("ND", "INT64")


def test_the_program_runs_by_its_name_wherever_it_is_called(tmp_path: Path) -> None:
    import torchferry.emulate.cann as toolkit

    programs = [EmulatedProgram("HOME_OF_IT", "tools/bin/msprof", ("tools/beside.py",), "msprof")]
    homes = {"HOME_OF_IT": tmp_path / "home"}
    make_programs(programs, homes)
    assert (tmp_path / "home/tools/beside.py").is_file()
    environment = {"PATH": "/usr/bin:/bin"}
    for _ in range(2):  # as in a process below another one
        put_on_path(programs, homes, Path(str(toolkit.__file__)).parent, environment)
    assert environment["PATH"] == f"{tmp_path}/home/tools/bin:/usr/bin:/bin"
    assert (environment[PYTHON], Path(environment[TOOLKIT]).name) == (sys.executable, "cann")
    folder = profile_folder(tmp_path / "PROF_1", TASKS, CALLS)
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')")
    command = ["sh", "-c", f"msprof --export=on --output={folder}"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(rows(folder, "op_summary")) == 3
