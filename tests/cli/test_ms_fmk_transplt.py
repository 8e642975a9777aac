"""ms_fmk_transplt: the flags and the files of Ascend's guide."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from openpyxl import load_workbook

from .commands import CONVERTED, TRAIN, command, contents, environment, make, names, one_line, run, tree

MAIN = """\
import torch

torch.cuda.set_device(0)
torch.cuda.nothing_of_this_name()
graph = torch.cuda.make_graphed_callables(f)
x = torch.zeros(1, dtype=torch.float64).cuda()
f = torch.jit.script(g)

if __name__ == "__main__":
    print(x)
"""
RULES = {
    "rules": {
        "ArgsModifyRule": [{"func_name": "name1", "arg_idx": 0, "arg_new": "args0"}],
        "FuncNameModifyRule": [{"old_name": "func", "new_name": "new_func"}],
        "ModuleNameModifyRule": [
            {"old_name": "module", "new_name": "new_module", "parent_module": "parent_module"}
        ],
    }
}
EXAMPLES = Path(__file__).parents[2] / "examples"
ADVICE = ["File", "Start Line", "End Line", "OP", "Tips"]


def convert(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return run("ms_fmk_transplt", *arguments, **options)  # type: ignore[arg-type]


def table(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"))))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return make(tmp_path / "net", main=MAIN)


def test_the_files(script: Path, tmp_path: Path) -> None:
    before = tree(script)
    result = convert("-i", script, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    out = tmp_path / "out" / "net_msft"
    assert set(names(out)) >= {
        "main.py",
        "msFmkTranspltlog.txt",
        "change_list.csv",
        "unsupported_op.xlsx",
        "findings.json",
        "report.html",
    }
    assert "run_distributed_npu.sh" not in names(out)
    assert f"converted scripts: {out}\n" in result.stdout
    assert tree(script) == before


def test_change_list(script: Path, tmp_path: Path) -> None:
    convert("-i", script, "-o", tmp_path)
    rows = table(tmp_path / "net_msft" / "change_list.csv")
    assert rows[0] == ["File", "Start Line", "End Line", "Operation Type", "Message"]
    assert rows[1][:4] == ["main.py", "1", "1", "INSERT"]
    assert rows[1][4].startswith('add "import torch_npu"')
    assert rows[2][:4] == ["main.py", "3", "3", "MODIFY"]
    assert rows[2][4].startswith('change "torch.cuda.set_device" to "torch.npu.set_device"')


def test_lists_hold_every_finding_of_their_sort(script: Path, tmp_path: Path) -> None:
    convert("-i", script, "-o", tmp_path)
    out = tmp_path / "net_msft"
    findings = json.loads((out / "findings.json").read_text())["findings"]
    count = {
        kind: sum(finding["kind"] == kind for finding in findings)
        for kind in ("unsupported", "unknown", "risk")
    }
    listed = {}
    for path in out.glob("*_a*.csv"):
        rows = table(path)
        assert rows[0] == ADVICE
        assert len(rows) > 1, "a list without findings is not written"
        listed[path.name] = len(rows) - 1
    assert listed.get("unsupported_api.csv", 0) == count["unsupported"]
    assert listed.get("unknown_api.csv", 0) == count["unknown"] > 0
    assert (
        listed["api_precision_advice.csv"] + listed.get("api_performance_advice.csv", 0) == count["risk"] > 0
    )
    sheet = load_workbook(out / "unsupported_op.xlsx").active
    assert sheet is not None
    rows = list(sheet.values)
    assert list(rows[0]) == ADVICE
    assert len(rows) - 1 == count["unsupported"] + count["unknown"]
    assert any(row[3] == "torch.cuda.nothing_of_this_name" for row in rows)


def test_the_log(script: Path, tmp_path: Path) -> None:
    make(script, old="import torch\nprint 'x'.cuda()\n")
    assert convert("-i", script, "-o", tmp_path, "-s").returncode == 3
    log = (tmp_path / "net_msft" / "msFmkTranspltlog.txt").read_text().splitlines()
    assert log[0].endswith(f"reads {script} for ascend")
    assert log[1] == "[INFO] options: --specify-device"
    assert any(line.startswith("[INFO] main.py: changed;") for line in log)
    assert any(line.startswith("[ERROR] old.py: not processed:") for line in log)
    assert any(
        line.startswith("[WARNING] main.py:4: unknown: torch.cuda.nothing_of_this_name") for line in log
    )
    assert log[-1].startswith("[INFO] done: 2 files seen, 1 changed, 1 not processed;")


def test_specify_device(script: Path, tmp_path: Path) -> None:
    convert("-i", script, "-o", tmp_path / "a")
    convert("--input", script, "--output", tmp_path / "b", "--specify-device")
    assert "DEVICE_ID" not in (tmp_path / "a" / "net_msft" / "main.py").read_text()
    assert "DEVICE_ID" in (tmp_path / "b" / "net_msft" / "main.py").read_text()


def test_two_runs_write_the_same(script: Path, tmp_path: Path) -> None:
    convert("-i", script, "-o", tmp_path)
    first = contents(tmp_path / "net_msft")
    assert convert("-i", script, "-o", tmp_path).returncode == 0
    assert contents(tmp_path / "net_msft") == first


def test_one_card_becomes_many(tmp_path: Path) -> None:
    single = EXAMPLES / "single_gpu" / "mnist"
    result = convert("-i", single, "-o", tmp_path, "-s", "-sim", "distributed", "-m", single / "train.py")
    assert result.returncode == 0, result.stderr
    out = tmp_path / "mnist_msft"
    launcher = out / "run_distributed_npu.sh"
    assert launcher.stat().st_mode & 0o111 and subprocess.run(["bash", "-n", launcher]).returncode == 0
    program = (out / "train.py").read_text()
    assert "DistributedSampler(" in program and "DistributedDataParallel(model" in program
    assert "torch_npu.optim.NpuFusedSGD(" in program  # -sim
    assert "DEVICE_ID" not in program  # -s gives way: each process has its own card
    assert "distributed --main" in (out / "msFmkTranspltlog.txt").read_text()


def test_without_those_words_it_stays_a_program_for_one_card(tmp_path: Path) -> None:
    assert convert("-i", EXAMPLES / "single_gpu" / "mnist", "-o", tmp_path).returncode == 0
    out = tmp_path / "mnist_msft"
    assert "run_distributed_npu.sh" not in names(out)
    assert "Distributed" not in (out / "train.py").read_text()
    assert "NpuFused" not in (out / "train.py").read_text()


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    single = EXAMPLES / "single_gpu" / "mnist"
    main = single / "train.py"
    result = convert("-i", single, "-o", tmp_path, "distributed", "-m", main, "-t", "no_such_model")
    assert result.returncode == 0
    assert (
        "no_such_model" in (tmp_path / "mnist_msft" / "msFmkTranspltlog.txt").read_text().split("options:")[1]
    )


def test_operators_of_extensions_are_listed(tmp_path: Path) -> None:
    project = make(tmp_path / "net", main=MAIN)
    (project / "ops.cpp").write_text(
        'void f_cuda();\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def("nms", &f_cuda);\n}\n'
    )
    convert("-i", project, "-o", tmp_path / "out")
    assert table(tmp_path / "out" / "net_msft" / "cuda_op_list.csv") == [["File", "Api"], ["ops.cpp", "nms"]]


def test_main_must_be_part_of_the_input(script: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", main=TRAIN)
    before = tree(tmp_path)
    one_line(
        convert("-i", script, "-o", tmp_path, "distributed", "-m", "none.py"),
        "no such file: none.py; -m names",
    )
    outside = convert("-i", script, "-o", tmp_path, "distributed", "--main", other / "main.py")
    one_line(outside, "other/main.py: not in")
    assert convert("-i", script, "-o", tmp_path, "distributed").returncode == 2
    assert tree(tmp_path) == before


def test_a_single_file_is_named_after_its_folder(script: Path, tmp_path: Path) -> None:
    make(script, other=TRAIN)
    assert convert("-i", script / "other.py", "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "net_msft" / "other.py").read_text() == CONVERTED
    assert "main.py" not in names(tmp_path / "out" / "net_msft")


def test_output_in_the_input(script: Path) -> None:
    for _ in range(2):
        assert convert("-i", script, "-o", script).returncode == 0
        assert "net_msft" not in names(script / "net_msft")


def test_what_is_not_ours_stays(script: Path, tmp_path: Path) -> None:
    make(tmp_path / "net_msft", mine="x")
    before = tree(tmp_path)
    one_line(convert("-i", script, "-o", tmp_path), "net_msft: exists and was not made by TorchFerry")
    assert tree(tmp_path) == before
    one_line(convert("-i", tmp_path / "none", "-o", tmp_path), "ms_fmk_transplt: ", "no such file or folder")
    one_line(convert("-i", script, "-o", script / "main.py"), "main.py is not a folder")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
def test_on_a_terminal_it_asks(script: Path, tmp_path: Path, answer: str, code: int) -> None:
    make(tmp_path / "net_msft", mine="x")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("ms_fmk_transplt", "-i", script, "-o", tmp_path),
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        env=environment(),
    )
    os.close(theirs)
    asked = b""
    while b"[y/N]" not in asked:
        asked += os.read(ours, 1000)
    assert b"which this tool has not made" in asked
    os.write(ours, answer.encode() + b"\n")
    assert process.wait(timeout=60) == code
    os.close(ours)
    assert ("mine.py" in names(tmp_path / "net_msft")) == (code == 2)


def test_own_rules(tmp_path: Path) -> None:
    text = "import torch\nfrom parent_module.module import thing\nname1(1, 2)\nlib.func()\n"
    project = make(tmp_path / "net", main="import lib\n" + text, **{"rules.json": json.dumps(RULES)})
    result = convert("-i", project, "-o", tmp_path, "-r", project / "rules.json")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "net_msft" / "main.py").read_text() == (
        "import lib\nimport torch\nfrom parent_module.new_module import thing\nname1(args0, 2)\nlib.new_func()\n"
    )


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ("{", "not JSON"),
        ("[]", "expected"),
        ('{"rules": {"X": []}}', "rules.X: unknown; allowed are ArgsModifyRule"),
        ('{"rules": {"FuncNameModifyRule": [{"old_name": "f"}]}}', "new_name is missing"),
        (
            '{"rules": {"FuncNameModifyRule": [{"old_name": "f", "new_name": "a b"}]}}',
            "FuncNameModifyRule[0].new_name: 'a b' is not a dotted Python name",
        ),
        (
            '{"rules": {"ArgsModifyRule": [{"func_name": "f", "arg_idx": -1, "arg_new": "x"}]}}',
            "arg_idx: -1 is not a position counted from 0",
        ),
        (
            '{"rules": {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0, "arg_new": "x, y"}]}}',
            "arg_new: 'x, y' is not one argument",
        ),
    ],
)
def test_mistakes_in_own_rules_are_named(script: Path, tmp_path: Path, rules: str, says: str) -> None:
    (tmp_path / "rules.json").write_text(rules)
    one_line(convert("-i", script, "-o", tmp_path, "-r", tmp_path / "rules.json"), "rules.json", says)
    assert names(tmp_path) == ["net", "rules.json"]


def test_chinese(script: Path, tmp_path: Path) -> None:
    convert("-i", script, "-o", tmp_path, env=environment(TORCHFERRY_LANG="zh"))
    assert "[INFO] 选项：无" in (tmp_path / "net_msft" / "msFmkTranspltlog.txt").read_text()
    assert table(tmp_path / "net_msft" / "change_list.csv")[0][0] == "File"


def test_help_points_to_ferry() -> None:
    assert "ferry convert X --to ascend" in convert("--help").stdout
