"""The vendor's own profiler on the emulated device: the folder that it writes says what has happened."""

from __future__ import annotations

import csv
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.commands import command, environment
from tests.emulate.running import run_python
from torchferry.cli.main import main
from torchferry.perf.opening import open_runs

pytestmark = pytest.mark.usefixtures("emulation")

PROGRAM = """\
import sys
import torch, torch_npu

profiler = torch_npu.profiler
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)

def train():
    optimizer.zero_grad()
    model(torch.ones(8, 16).npu()).sum().backward()
    optimizer.step()
    return model[0].bias.sum().item()  # all that the step has begun is done

with profiler.profile(
    activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
    schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
    on_trace_ready=profiler.tensorboard_trace_handler(sys.argv[1]),
    record_shapes=True,
    profile_memory=True,
    with_stack=True,
    experimental_config=profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1),
) as profile:
    for _ in range(5):
        train()
        profile.step()
"""
TRAINED = """\
import torch
model = torch.nn.Linear(16, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    model(torch.ones(8, 16).cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
FORWARD = [
    "aclnnAddmm_MatMulV2AiCore_MatMulV2",
    "aclnnRelu_ReluAiCore_Relu",
    "aclnnAddmm_MatMulV2AiCore_MatMulV2",
]
_ROUNDING = 0.01  # microseconds
_SECONDS = 1800  # far more than it takes on a busy machine


class Folder(NamedTuple):
    """What the profiler has written."""

    path: Path

    def rows(self, table: str) -> list[dict[str, str]]:
        with (self.path / "ASCEND_PROFILER_OUTPUT" / f"{table}.csv").open(
            newline="", encoding="utf-8"
        ) as file:
            return list(csv.DictReader(file))

    def total(self, table: str, column: str) -> float:
        return sum(float(row[column]) for row in self.rows(table))

    @property
    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            (self.path / "ASCEND_PROFILER_OUTPUT/trace_view.json").read_text()
        )
        return found


@pytest.fixture(scope="module")
def written(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("profile")
    done = run_python(PROGRAM, str(folder))
    assert done.returncode == 0, done.stderr
    assert "[ERROR]" not in done.stdout + done.stderr
    (path,) = folder.glob("*_ascend_pt")
    return Folder(path)


def test_all_its_files_are_there(written: Folder) -> None:
    names = {path.name for path in (written.path / "ASCEND_PROFILER_OUTPUT").iterdir()}
    assert names >= {
        "trace_view.json", "kernel_details.csv", "operator_details.csv", "step_trace_time.csv", "operator_memory.csv",
        "memory_record.csv", "api_statistic.csv", "op_statistic.csv", "task_time.csv", "analyse.done",
    }  # fmt: skip
    logs = "".join(path.read_text("utf-8", "replace") for path in (written.path / "logs").glob("*.log"))
    assert "[ERROR]" not in logs


def test_kernels_are_those_of_the_steps_in_their_order(written: Folder) -> None:
    kernels = written.rows("kernel_details")
    first, second = ([row["Name"] for row in kernels if row["Step Id"] == step] for step in ("2", "3"))
    assert first == second and len(first) + len(second) == len(kernels)
    at = first.index(FORWARD[0])
    assert first[at : at + 3] == FORWARD
    starts = [float(row["Start Time(us)"]) for row in kernels]
    assert starts == sorted(starts)


def test_kernels_have_their_tensors(written: Folder) -> None:
    matmul = next(row for row in written.rows("kernel_details") if row["Type"] == "MatMulV2")
    assert (matmul["Accelerator Core"], matmul["Input Shapes"]) == ("AI_CORE", '"8,16;16,32;32"')
    assert (matmul["Input Data Types"], matmul["Output Shapes"]) == ("FLOAT;FLOAT;FLOAT", '"8,32"')


def test_totals_of_the_tables_agree(written: Folder) -> None:
    kernels = written.total("kernel_details", "Duration(us)")
    assert kernels == pytest.approx(written.total("op_statistic", "Total Time(us)"), abs=_ROUNDING)
    assert kernels == pytest.approx(written.total("step_trace_time", "Computing"), abs=_ROUNDING)
    counts = Counter(row["Type"] for row in written.rows("kernel_details"))
    assert {row["OP Type"]: int(row["Count"]) for row in written.rows("op_statistic")} == counts
    assert [row["Step"] for row in written.rows("step_trace_time")] == ["2", "3"]
    calls = {
        row["API Name"]: int(row["Count"])
        for row in written.rows("api_statistic")
        if row["Level"] == "AscendCL"
    }
    assert calls["aclnnAddmm"] == 4 and calls["aclnnRelu"] == 2


def test_each_kernel_has_an_arrow_from_its_operator(written: Folder) -> None:
    events = written.events
    spans = {
        (event["pid"], event["tid"], event["ts"]): event["name"] for event in events if event["ph"] == "X"
    }
    arrows: dict[str, dict[str, str]] = {}
    for event in events:
        if event.get("cat") == "async_npu":
            arrows.setdefault(event["id"], {})[event["ph"]] = spans[event["pid"], event["tid"], event["ts"]]
    assert len(arrows) == len(written.rows("kernel_details"))
    launched = {arrow["f"]: arrow["s"] for arrow in arrows.values()}
    assert launched[FORWARD[0]] == "aclnnAddmm" and launched[FORWARD[1]] == "aclnnRelu"


def test_operators_have_the_time_of_their_kernels_and_their_lines(written: Folder) -> None:
    operators = written.rows("operator_details")
    self_time = sum(float(row["Device Self Duration(us)"]) for row in operators)
    assert self_time == pytest.approx(written.total("kernel_details", "Duration(us)"), abs=_ROUNDING)
    linear = [row for row in operators if row["Name"] == "aten::linear"]
    assert len(linear) == 4 and all(float(row["Device Total Duration(us)"]) > 0 for row in linear)
    assert all(
        "train" in row["Call Stack"] and "8,16" in row["Input Shapes"].replace(" ", "") for row in linear[:1]
    )


def test_memory_is_that_of_the_devices_allocator(written: Folder) -> None:
    made = [row for row in written.rows("operator_memory") if row["Name"] == "aten::addmm"]
    assert sorted(float(row["Size(KB)"]) for row in made) == [
        0.5,
        0.5,
        1.5,
        1.5,
    ]  # 8x4 and 8x32 floats, rounded up
    assert {row["Device Type"] for row in written.rows("memory_record")} == {"NPU:0"}


def test_ferry_analyze_names_the_kernels(written: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    (analyzed,) = open_runs([written.path])
    assert analyzed.kernels is not None and analyzed.trace is not None and analyzed.memory is not None
    assert len(analyzed.kernels) == len(analyzed.trace.device) == len(written.rows("kernel_details"))
    assert analyzed.vendor is not None and analyzed.vendor.name == "ascend"
    assert main(["analyze", str(written.path)]) == 0
    assert FORWARD[0] in capsys.readouterr().out


def test_ferry_profile_keeps_its_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINED)
    words = command(
        "ferry", "profile", "--to", "ascend", "--emulate", "--window", "3:4", "-o", "prof", "train.py"
    )
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stderr
    (analyzed,) = open_runs([tmp_path / "prof"])
    assert analyzed.kernels is not None and analyzed.trace is not None
    assert len(analyzed.trace.steps) == 2
    assert FORWARD[0] in {analyzed.kernels.texts[name] for name in analyzed.kernels.name.tolist()}
