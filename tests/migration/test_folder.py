"""The migration folder: made where one asks for it, found as git finds a repository, only ever added to."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchferry.errors import InputError
from torchferry.migration.folder import NAME, MigrationFolder, find, open_or_make
from torchferry.migration.model import DOCUMENT, KeptRun
from torchferry.report.provenance import Provenance
from torchferry.text import Text


def run_of(command: str = "scan", **more: object) -> KeptRun:
    made = Provenance(command=f"ferry {command} .", torchferry="0.1.0", date="2026-01-02 03:04 UTC")
    verdict = Text("3 blockers", "3 个阻塞项")
    found = {"started": "2026-01-02T03:04:05Z", "seconds": 1.5, "exit_code": 0, "tone": "todo", **more}
    return KeptRun(command=command, made=made, verdict=verdict, **found)  # type: ignore[arg-type]


def test_a_new_folder_knows_its_project_and_stays_out_of_git(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / "toy" / NAME)
    assert folder.name == "toy"
    assert (folder.path / ".gitignore").read_text() == "*\n"
    assert folder.runs() == []


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="not a migration folder; name a new or empty folder"):
        open_or_make(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_it_is_found_from_folders_below_the_project(tmp_path: Path) -> None:
    below = tmp_path / "toy" / "src" / "deep"
    below.mkdir(parents=True)
    assert find(below) is None
    made = open_or_make(tmp_path / "toy" / NAME)
    found = find(below)
    assert found is not None and found.path == made.path


def test_one_that_everybody_can_write_to_is_not_used_unasked(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / NAME)
    folder.path.chmod(0o777)
    assert find(tmp_path) is None


def test_runs_are_numbered_and_come_back_as_they_were(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / NAME)
    folder.add(run_of("scan"), {DOCUMENT: [b'{"a": ', b"1}"]})
    folder.add(run_of("prove", exit_code=1, plugins={"torch-npu": "2.9.0"}), {})
    scan, prove = folder.runs()
    assert (scan.number, scan.command, scan.files) == (1, "scan", (DOCUMENT,))
    assert folder.document(scan) == {"a": 1}
    assert (prove.number, prove.exit_code, prove.plugins) == (2, 1, {"torch-npu": "2.9.0"})
    assert prove.verdict == Text("3 blockers", "3 个阻塞项")


def add_ten(path: Path) -> None:
    for number in range(10):
        MigrationFolder(path).add(run_of(f"w{number}"), {DOCUMENT: [b"{}"]})


def test_commands_that_end_at_once_all_add_their_results(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / NAME)
    (folder.path / "runs").mkdir()
    writers = [
        multiprocessing.get_context("fork").Process(target=add_ten, args=(folder.path,)) for _ in range(3)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [run.number for run in folder.runs()] == list(range(1, 31))
    assert sorted(os.listdir(folder.path / "runs")) == [f"{number:04}" for number in range(1, 31)]


def test_a_run_that_is_damaged_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / NAME)
    folder.add(run_of("scan"), {})
    folder.add(run_of("ops"), {})
    (folder.path / "runs" / "0001" / "run.json").write_text("{")
    assert [run.command for run in folder.runs()] == ["ops"]


def test_decisions_are_added_and_taken_back(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / NAME)
    assert folder.decide("accepted", ["TF204", "prove"]) == ["TF204", "prove"]
    assert folder.decide("accepted", ["TF204"], ["prove"]) == ["TF204"]
    assert folder.decisions() == {"accepted": ["TF204"]}


def test_nothing_in_it_says_where_the_project_lies(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / "secret-place" / "toy" / NAME)
    folder.add(run_of(), {})
    for path in folder.path.rglob("*.json"):
        assert "secret-place" not in path.read_text()


def killed_while_adding(path: Path) -> None:
    def data() -> Iterator[bytes]:
        yield b"{"
        os.kill(os.getpid(), signal.SIGKILL)

    MigrationFolder(path).add(run_of(), {DOCUMENT: data()})


def test_a_command_that_is_killed_adds_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    folder = open_or_make(tmp_path / NAME)
    process = multiprocessing.get_context("fork").Process(target=killed_while_adding, args=(folder.path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert folder.runs() == []
    folder.add(run_of(), {})
    assert os.listdir(folder.path / "runs") == ["0001"]
