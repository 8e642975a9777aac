"""Where a migration stops and how it goes on, with commands that only pretend: what each answers is in the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchferry.files.written import digests, with_list
from torchferry.migration.folder import NAME, open_or_make
from torchferry.migration.migrating import Migrating, exit_code
from torchferry.migration.model import DOCUMENT
from torchferry.migration.report import grade, resume_command
from torchferry.migration.request import request_of
from torchferry.migration.steps import Migration, MigrationStep, StepState

from .test_decisions import finding
from .test_folder import run_of

Answers = dict[str, int | dict[str, Any]]  # of a step: its exit code, or its report


class Pretending(Migrating):
    """Steps that start no process, but add a run to the history as commands do; a conversion writes a copy."""

    answers: Answers
    begun: list[str]

    def _run(self, name: str, by_hand: str) -> int:
        self.begun.append(name)
        answer = self.answers.get(name, 0)
        document = answer if isinstance(answer, dict) else {}
        self.folder.add(run_of(name, tone="change"), {DOCUMENT: [json.dumps(document).encode()]})
        if name == "convert":
            self._convert()
        return answer if isinstance(answer, int) else 0

    def _convert(self) -> None:
        self._copy.mkdir(exist_ok=True)
        for path in self._project.glob("*.py"):
            (self._copy / path.name).write_text(path.read_text().replace("cuda", "npu"))
        (self._copy / "findings.json").unlink(missing_ok=True)
        listed = with_list(b'{\n "findings": []\n}', "findings.json", digests(self._copy))
        (self._copy / "findings.json").write_bytes(listed)


Migrate = Callable[..., tuple[Migration, list[str]]]


@pytest.fixture
def migrate(tmp_path: Path) -> Migrate:
    """Migrates a toy; the steps that were begun, and how far it has come."""
    project = tmp_path / "toy"
    project.mkdir()
    (project / "train.py").write_text("x.cuda()\n")
    (project / "model.py").write_text("y.cuda()\n")
    folder = open_or_make(project / NAME)
    request = request_of(Path("train.py"), project, project, "npu", None, to="ascend")

    def go(resume: bool = True, accept: tuple[str, ...] = (), **answers: Any) -> tuple[Migration, list[str]]:
        def tell(step: MigrationStep, begins: bool) -> None:
            assert begins or step.state is not StepState.WAITING

        migrating = Pretending(folder, request, project, tell, resume)
        migrating.answers, migrating.begun = answers, []
        migrating.accept(accept)
        return migrating.carry_out(), migrating.begun

    return go


ALL = ["doctor", "scan", "ops", "convert", "run", "prove", "report"]
BLOCKED = {"findings": [finding("TF401", "model.py", 1)]}


def test_all_steps_are_done_once(migrate: Migrate) -> None:
    migration, begun = migrate(resume=False)
    assert (migration.is_complete, exit_code(migration), begun) == (True, 0, ALL)
    assert migrate()[1] == ["report"]


def test_a_blocker_stops_before_the_copy_is_run(migrate: Migrate) -> None:
    migration, begun = migrate(resume=False, convert=BLOCKED)
    assert (exit_code(migration), begun) == (1, ["doctor", "scan", "ops", "convert", "report"])
    assert [each.name for each in migration.decisions] == ["TF401"]
    assert migrate()[1] == ["report"]  # nothing was decided
    migration, begun = migrate(accept=("TF401",))
    assert (migration.is_complete, begun) == (True, ["run", "prove", "report"])


def test_a_file_that_was_edited_is_decided_and_stays(migrate: Migrate, tmp_path: Path) -> None:
    migrate(resume=False, convert=BLOCKED)
    edited = tmp_path / "toy_npu" / "model.py"
    edited.write_text("mine\n")
    migration, begun = migrate()
    assert (migration.is_complete, begun) == (True, ["run", "prove", "report"])
    assert edited.read_text() == "mine\n"


def test_a_project_that_changed_after_the_copy_was_edited_needs_a_decision(
    migrate: Migrate, tmp_path: Path
) -> None:
    migrate(resume=False)
    edited = tmp_path / "toy_npu" / "model.py"
    edited.write_text("mine\n")
    (tmp_path / "toy" / "train.py").write_text("z.cuda()\n")
    migration, begun = migrate()
    assert begun == ["doctor", "scan", "ops", "report"]
    assert [each.name for each in migration.decisions] == ["convert"]
    migration, begun = migrate(accept=("convert",))
    assert (migration.is_complete, begun) == (True, ["run", "prove", "report"])
    assert edited.read_text() == "mine\n"


def test_a_copy_without_edits_is_converted_again(migrate: Migrate, tmp_path: Path) -> None:
    migrate(resume=False)
    (tmp_path / "toy" / "train.py").write_text("z.cuda()\n")
    migration, begun = migrate()
    assert (migration.is_complete, begun) == (True, ALL)
    assert (tmp_path / "toy_npu" / "train.py").read_text() == "z.npu()\n"


def test_a_copy_that_was_edited_is_run_and_proved_again(migrate: Migrate, tmp_path: Path) -> None:
    migrate(resume=False)
    (tmp_path / "toy_npu" / "train.py").write_text("faster\n")
    assert migrate()[1] == ["run", "prove", "report"]


def test_a_proof_that_does_not_hold(migrate: Migrate) -> None:
    migration, _ = migrate(resume=False, prove=1)
    assert exit_code(migration) == 1
    assert migration.advice[0].en.startswith("The proof does not hold")
    migration, begun = migrate(accept=("prove",))
    assert (migration.is_complete, begun) == (True, ["report"])
    assert migration.step("prove").state is StepState.ACCEPTED


def test_a_program_that_fails_is_run_again(migrate: Migrate) -> None:
    migration, begun = migrate(resume=False, run=1)
    assert (exit_code(migration), begun[-2:]) == (3, ["run", "report"])
    assert migrate()[1] == ["run", "prove", "report"]


def test_operators_that_are_not_known_stop_after_the_conversion(migrate: Migrate) -> None:
    migration, begun = migrate(resume=False, ops=3)
    assert (exit_code(migration), begun) == (3, ["doctor", "scan", "ops", "convert", "report"])
    assert "--accept ops" in migration.advice[0].en
    migration, begun = migrate(accept=("ops",))
    assert (migration.is_complete, begun) == (True, ["run", "prove", "report"])


def test_decisions_stay_for_a_new_start(migrate: Migrate) -> None:
    migrate(resume=False, accept=("TF401",), convert=BLOCKED)
    migration, _ = migrate(resume=False, convert=BLOCKED)
    assert migration.is_complete


def test_what_was_accepted_is_said(migrate: Migrate) -> None:
    migration, _ = migrate(resume=False)
    assert grade(migration).name.en.startswith("Migrated and proved: ")
    migration, _ = migrate(accept=("TF401",))
    assert grade(migration).name.en.startswith("Migrated and proved, with TF401 accepted: ")
    migration, _ = migrate(resume=False, accept=("prove",), prove=1)
    assert grade(migration).name.en.startswith("Migrated; accepted without proof")


def test_the_command_that_goes_on_can_be_typed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_or_make(tmp_path / "toy" / NAME)
    monkeypatch.chdir(tmp_path / "toy")
    assert resume_command(folder) == "ferry migrate --resume"
    monkeypatch.chdir(tmp_path)
    assert resume_command(folder, ["TF401"]) == "ferry migrate --resume --into toy/.ferry --accept TF401"
