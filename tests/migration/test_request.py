"""The commands of the steps, as a user would type them, and what makes a step worth doing again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.migration.fingerprints import digests, fingerprint, made_by_program
from torchferry.migration.request import MigrationRequest, request_of
from torchferry.migration.starting import project_of


def request(tmp_path: Path, script: str = "train.py", here: str = ".", **choices: object) -> MigrationRequest:
    project = tmp_path / "toy"
    (project / here).mkdir(parents=True, exist_ok=True)
    return request_of(Path(script), project, project / here, "npu", None, to="ascend", **choices)


def test_commands_count_from_the_folder_where_the_program_starts(tmp_path: Path) -> None:
    asked = request(tmp_path, arguments=("--lr", "0.1"), steps=5)
    assert asked.by_hand("doctor") == "ferry doctor --to ascend"
    assert asked.by_hand("scan") == "ferry scan . --to ascend"
    assert asked.by_hand("ops") == "ferry ops --to ascend train.py --lr 0.1"
    assert asked.by_hand("convert") == "ferry convert . --to ascend -o ../toy_npu"
    assert asked.by_hand("run") == (
        "(cd ../toy_npu && ferry run --to ascend --sim --converted --steps 5 --devices 1 train.py --lr 0.1)"
    )
    assert asked.by_hand("prove") == (
        "ferry prove --to ascend --steps 5 --seed 0 --before train.py --after ../toy_npu/train.py -- --lr 0.1"
    )


def test_a_program_that_is_started_in_a_folder_of_its_project(tmp_path: Path) -> None:
    asked = request(tmp_path, here="tools")
    assert asked.by_hand("scan") == "ferry scan .. --to ascend"
    assert asked.by_hand("convert") == "ferry convert .. --to ascend -o ../../toy_npu"
    assert asked.by_hand("run").startswith("(cd ../../toy_npu/tools && ferry run ")
    assert "--after ../../toy_npu/tools/train.py" in asked.by_hand("prove")


def test_several_processes_and_the_plugin_on_an_emulated_device(tmp_path: Path) -> None:
    asked = request(tmp_path, nproc=2, means="emulate")
    assert "run --to ascend --emulate --converted --steps 20 --nproc 2 train.py" in asked.by_hand("run")
    assert "--nproc 2 --emulate --before" in asked.by_hand("prove")
    assert asked.by_hand("doctor") == "ferry doctor --to ascend --nproc 2 --emulate"


def test_words_with_blanks_are_quoted(tmp_path: Path) -> None:
    assert request(tmp_path, arguments=("a b",)).by_hand("ops").endswith("train.py 'a b'")


def test_a_step_is_the_same_as_long_as_its_sources_and_options_are(tmp_path: Path) -> None:
    asked = request(tmp_path)
    (tmp_path / "toy" / "train.py").write_text("x = 1\n")
    before = digests(tmp_path / "toy")
    first = fingerprint(asked, "ops", before, {}, ())
    assert fingerprint(asked, "ops", digests(tmp_path / "toy"), {"train.py": "edited"}, ()) == first
    assert fingerprint(replace(asked, arguments=("--fast",)), "ops", before, {}, ()) != first
    (tmp_path / "toy" / "train.py").write_text("x = 2\n")
    assert fingerprint(asked, "ops", digests(tmp_path / "toy"), {}, ()) != first


def test_the_copy_counts_for_what_runs_it(tmp_path: Path) -> None:
    asked = request(tmp_path)
    assert fingerprint(asked, "run", {}, {"a.py": "1"}, ()) != fingerprint(
        asked, "run", {}, {"a.py": "2"}, ()
    )


def test_what_a_program_writes_is_not_its_source(tmp_path: Path) -> None:
    before, after = {"c.json": "1", "a.py": "1"}, {"c.json": "1", "a.py": "2", "log.json": "1"}
    assert made_by_program(before, after) == ["log.json"]
    asked = request(tmp_path)
    assert fingerprint(asked, "ops", before, {}, ()) == fingerprint(
        asked, "ops", {**before, "log.json": "1"}, {}, ["log.json"]
    )


def test_data_and_hidden_folders_are_not_read(tmp_path: Path) -> None:
    for name in (".ferry/runs/x.json", "data.bin", "src/a.py", "venv/pyvenv.cfg", "venv/lib.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert list(digests(tmp_path)) == ["src/a.py"]


def made(folder: Path, *files: str) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_the_project_is_where_one_stands_if_that_looks_like_one(tmp_path: Path) -> None:
    repository = made(tmp_path / "repository", "pyproject.toml", "tools/train.py", "tools/requirements.txt")
    assert project_of(Path("tools/train.py"), repository) == repository


def test_the_project_is_found_around_the_program(tmp_path: Path) -> None:
    made(tmp_path, "seg/requirements.txt", "seg/bin/train.py", "holiday.jpg")
    assert project_of(Path("seg/bin/train.py"), tmp_path) == tmp_path / "seg"


def test_without_a_sign_of_a_project_it_is_this_folder_but_never_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "a/b/train.py")
    assert project_of(Path("b/train.py"), tmp_path / "a") == tmp_path / "a"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert project_of(Path("a/b/train.py"), tmp_path) == tmp_path / "a" / "b"
