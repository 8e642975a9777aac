"""What scan, convert and the drop-ins say: formats by suffix, notes, repeated messages, other ways to start them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchferry.cli import ms_fmk_transplt, torch_gpu2mlu
from torchferry.cli.main import main

DATA_PARALLEL = "import torch\na = torch.nn.DataParallel(a)\nb = torch.nn.DataParallel(b)\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(DATA_PARALLEL)
    return folder


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [
        (".html", b"<!DOCTYPE html"),
        (".json", b"{"),
        (".sarif", b"{"),
        (".md", b"#"),
        (".xlsx", b"PK"),
        (".txt", b"TorchFerry"),
        (".other", b"TorchFerry"),
    ],
)
def test_the_suffix_says_the_format(suffix: str, begins: bytes) -> None:
    assert main(["scan", "project", "--to", "ascend", "-o", f"a{suffix}"]) == 0
    assert Path(f"a{suffix}").read_bytes().startswith(begins)
    main(["scan", "project", "--to", "ascend", "--format", "json", "-o", "findings"])
    assert main(["report", "findings", "-o", f"b{suffix}"]) == 0
    assert Path(f"b{suffix}").read_bytes().startswith(begins)


def test_a_format_that_is_named_wins() -> None:
    main(["scan", "project", "--to", "ascend", "--format", "md", "-o", "a.html"])
    assert Path("a.html").read_bytes().startswith(b"#")


def test_places_with_one_cause_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    main(["scan", "project", "--to", "ascend", "--verbose"])
    printed = capsys.readouterr().out
    assert printed.count("DistributedSampler") == 1
    assert "2 ×" in printed and "train.py:2:" in printed and "train.py:3:" in printed
    main(["scan", "project", "--to", "ascend", "--format", "json"])
    found = [item["do"] for item in json.loads(capsys.readouterr().out)["findings"]]
    assert len(found) == 2 and found[0] == found[1]


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["help", "scan"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("usage: ferry scan")


def test_the_language_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--lang", "zh", "scan", "project", "--to", "ascend"])
    assert "待决定" in capsys.readouterr().out


@pytest.mark.parametrize(
    "module", ["torchferry", "torchferry.cli.ms_fmk_transplt", "torchferry.cli.torch_gpu2mlu"]
)
def test_python_m(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    assert "\nusage: " in f"\n{done.stdout}"


def test_rules_that_match_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    rules = {"FuncNameModifyRule": [{"old_name": "torch.nosuch", "new_name": "x"}]}
    rules["FuncNameModifyRule"].append({"old_name": "torch.nn.DataParallel", "new_name": "mine.Parallel"})
    Path("rules.json").write_text(json.dumps({"rules": rules}))
    main(["scan", "project", "--to", "ascend", "--rules", "rules.json"])
    noted = [line for line in capsys.readouterr().err.splitlines() if "matched nothing" in line]
    assert noted == ["note: your rule for torch.nosuch (rules.json:1) matched nothing"]


def test_why_a_rule_was_not_applied(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text("from lib import name2\ndef func():\n    pass\nfunc()\nname2(x=3)\n")
    rules = {
        "FuncNameModifyRule": [{"old_name": "func", "new_name": "other"}],
        "ArgsModifyRule": [{"func_name": "name2", "arg_idx": 0, "arg_new": "5"}],
    }
    Path("rules.json").write_text(json.dumps({"rules": rules}))
    main(["scan", "project", "--to", "ascend", "--rules", "rules.json", "--format", "json"])
    told = {
        item["before"]: item["title"] + item["why"]
        for item in json.loads(capsys.readouterr().out)["findings"]
    }
    assert "defines `func` itself" in told["func()"]
    assert "gives x by name" in told["name2(x=3)"]


def test_an_empty_folder_is_an_error_for_the_drop_ins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert torch_gpu2mlu.main(["-i", "empty"]) == 2
    assert ms_fmk_transplt.main(["-i", "empty", "-o", "out"]) == 2
    assert capsys.readouterr().err.count("empty; nothing was written") == 2
    assert not (tmp_path / "empty_mlu").exists()


def test_an_output_that_looks_like_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ms_fmk_transplt.main(["-i", "project/train.py", "-o", "model_out.py"]) == 0
    assert "-o names a folder: the scripts are written to" in capsys.readouterr().err
    assert (tmp_path / "model_out.py/project_msft/train.py").is_file()


def test_data_parallel_is_in_the_list_of_what_is_unsupported(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    ms_fmk_transplt.main(["-i", "project", "-o", "out"])
    data = (tmp_path / "out/project_msft/unsupported_op.xlsx").read_bytes()
    rows = list(load_workbook(io.BytesIO(data)).worksheets[0].values)
    assert [row[3] for row in rows[1:]] == ["torch.nn.DataParallel"] * 2


def test_an_unknown_target_is_told_of_portable_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "project", "--to", "asend"]) == 2
    told = capsys.readouterr().err
    assert "did you mean" in told
    assert "`portable`" in told
