"""Where each side of a proof runs, and where its modules come from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchferry.proof.settings import imported_from, moved_arguments, moved_search_path, projects


@pytest.mark.parametrize(
    ("here", "original", "converted", "original_in", "converted_in"),
    [
        pytest.param(".", "a/t.py", "b/t.py", "a", "b", id="above both"),
        pytest.param("a", "t.py", "../b/t.py", "a", "b", id="in the original"),
        pytest.param("b", "../a/t.py", "t.py", "a", "b", id="in the copy"),
        pytest.param(".", "a/tools/t.py", "b/tools/t.py", "a", "b", id="a script further down"),
        pytest.param("a/tools", "t.py", "../../b/tools/t.py", "a/tools", "b/tools", id="beside that script"),
        pytest.param(".", "a/t.py", "out/a/t.py", "a", "out/a", id="a copy of the same name"),
        pytest.param("a", "t.py", "out/t.py", "a", "a/out", id="a copy inside of the original"),
        pytest.param("else", "../a/t.py", "../b/t.py", "a", "b", id="elsewhere"),
    ],
)
def test_each_side_runs_in_its_own_project(
    tmp_path: Path, here: str, original: str, converted: str, original_in: str, converted_in: str
) -> None:
    for folder in ("a/tools", "b/tools", "out/a", "a/out", "else"):
        (tmp_path / folder).mkdir(parents=True)
    place = tmp_path / here
    found = projects(original, converted, place)
    assert found is not None
    sides = [found.folder(place, is_converted) for is_converted in (False, True)]
    assert sides == [tmp_path / original_in, tmp_path / converted_in]


def test_scripts_of_other_names_are_of_one_project(tmp_path: Path) -> None:
    assert projects("train.py", "train_npu.py", tmp_path) is None


def test_arguments_that_name_files_from_here_go_on_to_do_so(tmp_path: Path) -> None:
    for name in ("data/x", "a/configs", "configs"):
        (tmp_path / name).mkdir(parents=True)
    given = ("--data", "data/x", "--cfg=configs", "--root=data", "--epochs", "1", "-v", "/abs", "results")
    moved = moved_arguments(given, tmp_path, tmp_path / "a")
    whole = (str(tmp_path / "data/x"), f"--root={tmp_path}/data")
    assert moved == ("--data", whole[0], "--cfg=configs", whole[1], "--epochs", "1", "-v", "/abs", "results")


def test_the_search_path_leads_into_the_own_project(tmp_path: Path) -> None:
    for name in ("a/lib", "b/lib", "a/only", "other"):
        (tmp_path / name).mkdir(parents=True)
    found = projects("a/t.py", "b/t.py", tmp_path)
    assert found is not None
    given = {"PYTHONPATH": f"a:{tmp_path}/a/lib:a/only:other"}
    names = ("b", "b/lib", "a/only", "other")
    assert moved_search_path(given, found, tmp_path, True) == {
        "PYTHONPATH": ":".join(str(tmp_path / name) for name in names)
    }
    assert moved_search_path({}, found, tmp_path, True) == {}


def test_modules_of_the_other_side_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/net.py", "b/net.py", "a/only.py", "a/.venv/site-packages/net.py", "b/own.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        module = ModuleType(name)
        module.__file__ = str(tmp_path / name)
        monkeypatch.setitem(sys.modules, f"of_test.{name}", module)
    assert imported_from(tmp_path / "a", tmp_path / "b") == [str(tmp_path / "a/net.py")]
    assert imported_from(tmp_path / "b", tmp_path / "a") == [str(tmp_path / "b/net.py")]
