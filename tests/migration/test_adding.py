"""Commands add their results: when asked to with --into, or to the migration folder that a project has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchferry.cli.main import main
from torchferry.migration.folder import NAME, MigrationFolder, find, open_or_make

PROGRAM = "import torch\nmodel = torch.nn.Linear(1, 1).cuda()\nx = torch.ones(1, device='cuda:0')\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(folder)
    return folder


def kept(folder: Path) -> MigrationFolder:
    found = find(folder)
    assert found is not None
    return found


def test_nothing_is_written_into_a_project_unasked(project: Path) -> None:
    assert main(["scan", ".", "--to", "ascend"]) == 0
    assert [path.name for path in project.iterdir()] == ["train.py"]


def test_into_makes_the_folder_and_the_next_commands_find_it(project: Path, capsys: Any) -> None:
    assert main(["scan", ".", "--to", "ascend", "--into", NAME]) == 0
    assert "result added to .ferry as run 1" in capsys.readouterr().err
    assert main(["convert", ".", "--to", "ascend", "-o", "../toy_npu", "-q"]) == 0
    scan, convert = kept(project).runs()
    assert (scan.command, scan.exit_code, scan.folder) == ("scan", 0, ".")
    assert kept(project).document(scan)["format"] == "torchferry-findings"
    assert convert.command == "convert" and convert.verdict.en and convert.verdict.zh


def test_the_folder_is_no_part_of_the_project(project: Path) -> None:
    main(["scan", ".", "--to", "ascend", "--into", NAME, "-q"])
    main(["scan", ".", "--to", "ascend", "--into", "results", "-q"])
    main(["convert", ".", "--to", "ascend", "-o", "../toy_npu", "-q"])
    assert not (project.parent / "toy_npu" / NAME).exists()
    assert not (project.parent / "toy_npu" / "results").exists()
    scan, convert = kept(project).runs()
    assert kept(project).document(scan)["files_seen"] == kept(project).document(convert)["files_seen"]


def test_a_dash_adds_it_nowhere(project: Path) -> None:
    open_or_make(project / NAME)
    main(["scan", ".", "--to", "ascend", "--into", "-", "-q"])
    assert kept(project).runs() == []


def test_a_command_that_fails_is_in_the_history_with_its_reason(project: Path, capsys: Any) -> None:
    open_or_make(project / NAME)
    assert main(["scan", "nowhere", "--to", "ascend"]) == 2
    (run,) = kept(project).runs()
    assert run.exit_code == 2 and run.tone == "unsupported"
    assert "no such file or folder" in run.verdict.en and run.verdict.zh != run.verdict.en


def test_a_result_that_cannot_be_added_does_not_fail_the_command(project: Path, capsys: Any) -> None:
    folder = open_or_make(project / NAME)
    (folder.path / "runs").write_text("a file where the folder of runs should be")
    assert main(["scan", ".", "--to", "ascend"]) == 0
    assert "result not added to .ferry" in capsys.readouterr().err


def test_the_machine_is_examined_into_the_folder(project: Path) -> None:
    open_or_make(project / NAME)
    main(["doctor", "--to", "ascend", "--json"])
    (run,) = kept(project).runs()
    assert kept(project).document(run)["format"] == "torchferry-doctor"
    assert run.verdict.en.startswith("not ready for ascend")
    assert run.has_page and kept(project).body(run).overview


def test_a_report_of_the_folder_is_a_page(project: Path, capsys: Any) -> None:
    assert main(["report"]) == 2
    assert "no migration folder here" in capsys.readouterr().err
    main(["scan", ".", "--to", "ascend", "--into", NAME, "-q"])
    assert main(["report"]) == 0
    assert "Page written to .ferry/index.html" in capsys.readouterr().err
    assert main(["report", ".", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["report", NAME, "--format", "csv"]) == 2
    assert "a migration folder is made into a page only" in capsys.readouterr().err
