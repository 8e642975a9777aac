"""Files that a conversion adds: written with the copy and in place, shown in the diff, never over a user's file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conversion.rewriting import target
from torchferry.cli.convert import project_diff
from torchferry.conversion.added import AddedFile, TakenNames
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.conversion.write import Replace, write_file, write_in_place, write_project
from torchferry.errors import OutputError
from torchferry.outcome import FileStatus

SCRIPT = b"#!/bin/sh\ntorchrun train.py\n"


def outcome_of(root: Path) -> ProjectOutcome:
    return examine_project(root, Plan(target("ascend")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("import torch\nx.cuda()\n")
    return root


def test_the_copy_has_the_file(project: Path, tmp_path: Path) -> None:
    outcome = outcome_of(project)
    assert outcome.add("tools/run.sh", AddedFile(SCRIPT, executable=True)) == "tools/run.sh"
    write_project(outcome, tmp_path / "out", {}, Replace.NOTHING)
    written = tmp_path / "out" / "tools" / "run.sh"
    assert written.read_bytes() == SCRIPT
    assert os.access(written, os.X_OK)
    assert not os.access(tmp_path / "out" / "train.py", os.X_OK)


def test_reports_list_it(project: Path) -> None:
    outcome = outcome_of(project)
    outcome.add("run.sh", AddedFile(SCRIPT))
    record = outcome.report("convert").files[-1]
    assert (record.path, record.status) == ("run.sh", FileStatus.ADDED)
    assert record.hunks[0].lines == (("+", "", "#!/bin/sh"), ("+", "", "torchrun train.py"))


@pytest.mark.parametrize("tool", [["git", "apply"], ["patch", "-p1", "-i"]])
def test_the_diff_makes_it(project: Path, tmp_path: Path, tool: list[str]) -> None:
    outcome = outcome_of(project)
    outcome.add("run it.sh", AddedFile(SCRIPT, executable=True))
    patch = tmp_path / "all.patch"
    patch.write_bytes(project_diff(outcome))
    subprocess.run([*tool, str(patch)], cwd=project, check=True, capture_output=True)
    assert (project / "run it.sh").read_bytes() == SCRIPT
    assert "torch_npu" in (project / "train.py").read_text()


def test_a_name_that_the_project_has_is_left_to_it(project: Path) -> None:
    (project / "Run.sh").write_text("mine\n")
    outcome = outcome_of(project)
    assert outcome.add("run.sh", AddedFile(SCRIPT)) == "run_2.sh"
    assert outcome.add("run.sh", AddedFile(b"another\n")) == "run_3.sh"


def test_what_an_earlier_run_has_added_is_not_added_again(project: Path) -> None:
    (project / "run.sh").write_bytes(SCRIPT)
    outcome = outcome_of(project)
    assert outcome.add("run.sh", AddedFile(SCRIPT)) == "run.sh"
    assert outcome.added == {}


def test_in_place(project: Path) -> None:
    outcome = outcome_of(project)
    outcome.add("run.sh", AddedFile(SCRIPT))
    assert write_in_place(outcome) == 2
    assert (project / "run.sh").read_bytes() == SCRIPT


def test_in_place_nothing_is_replaced(project: Path) -> None:
    """Here an ignored file lies where the new one is to go."""
    outcome = outcome_of(project)
    outcome.add("run.sh", AddedFile(SCRIPT))
    (project / "run.sh").write_text("mine\n")
    with pytest.raises(OutputError, match="move it away"):
        write_in_place(outcome)
    assert (project / "run.sh").read_text() == "mine\n"
    assert "npu" not in (project / "train.py").read_text()


def test_beside_a_single_file(project: Path, tmp_path: Path) -> None:
    outcome = outcome_of(project / "train.py")
    outcome.add("run.sh", AddedFile(SCRIPT))
    write_file(outcome, tmp_path / "new" / "train_npu.py")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["run.sh", "train_npu.py"]
    (tmp_path / "new" / "run.sh").write_text("mine\n")
    with pytest.raises(OutputError, match="move it away"):
        write_file(outcome, tmp_path / "new" / "train_npu.py")
    write_file(outcome, tmp_path / "new" / "train_npu.py", force=True)
    assert (tmp_path / "new" / "run.sh").read_bytes() == SCRIPT


def test_free_names() -> None:
    taken = TakenNames(["a/x.py", "a/x_2.py", "README"])
    assert [taken.free(path) for path in ("a/x.py", "b/x.py", "README")] == ["a/x_3.py", "b/x.py", "README_2"]
