"""Ctrl-C, SIGTERM and kill -9 at any time: the output is absent or complete, and nothing else stays behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .commands import command, contents, environment, ferry, names, tree, wait_until_at_work

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def start(project: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("ferry", "convert", project, "-o", out, "--to", "ascend", *options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def wait_for_writing(process: subprocess.Popen[str], folder: Path) -> None:
    """Return while the copy is being written aside."""
    while process.poll() is None:
        if any(any(aside.glob("new/*/*")) for aside in folder.glob(".ferry-aside-*")):
            return
        time.sleep(0.005)
    pytest.fail("the copy was never seen being written")


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", CODES)
def test_while_looking(slow_project: Path, tmp_path: Path, number: signal.Signals, jobs: str) -> None:
    process = start(slow_project, tmp_path / "a" / "out", "-j", jobs)
    wait_until_at_work(process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == CODES[number]
    assert errors == "ferry: interrupted; nothing was written\n"
    assert names(tmp_path) == []


@pytest.mark.parametrize("number", CODES)
def test_while_writing(wide_project: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = start(wide_project, tmp_path / "out")
    wait_for_writing(process, tmp_path)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == CODES[number]
    assert errors == "ferry: interrupted; nothing was written\n"
    assert names(tmp_path) == []


def test_killed_while_writing(wide_project: Path, tmp_path: Path) -> None:
    before = tree(wide_project)
    process = start(wide_project, tmp_path / "out")
    wait_for_writing(process, tmp_path)
    process.kill()
    process.communicate()
    (leftover,) = names(tmp_path)
    assert leftover.startswith(".ferry-aside-")
    assert ferry("convert", wide_project, "-o", tmp_path / "out", "-q").returncode == 0
    assert names(tmp_path) == ["out"]
    assert len(contents(tmp_path / "out")) == 3_002
    assert tree(wide_project) == before


def test_a_leftover_inside_the_input_is_not_part_of_it(wide_project: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(wide_project, project)
    process = start(project, project / "out")
    wait_for_writing(process, project)
    process.kill()
    process.communicate()
    assert any(name.startswith(".ferry-aside-") for name in names(project))
    scan = ferry("scan", project, "--format", "json")
    assert json.loads(scan.stdout)["files_seen"] == 3_000
    assert ferry("convert", project, "-o", project / "out", "-q").returncode == 0
    assert not any(name.startswith(".ferry") for name in (*names(project), *names(project / "out")))


def test_what_a_living_run_writes_is_left_alone(
    slow_project: Path, wide_project: Path, tmp_path: Path
) -> None:
    process = start(wide_project, tmp_path / "out")
    wait_for_writing(process, tmp_path)
    small = slow_project.parent / "small.py"
    small.write_text("x = 1\n")
    assert ferry("convert", small, "-o", tmp_path / "other").returncode == 0
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert names(tmp_path) == ["other", "out"]


def test_an_output_that_came_up_meanwhile_is_not_replaced(wide_project: Path, tmp_path: Path) -> None:
    process = start(wide_project, tmp_path / "out")
    wait_for_writing(process, tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "out: not empty; choose another folder" in errors
    assert names(tmp_path / "out") == ["mine"]
    assert names(tmp_path) == ["out"]
