"""`ferry migrate` on a messy little repository: it stops at a blocker, is killed, goes on, proves, and makes a page."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import CHROMIUM, quiet_pages
from torchferry.migration.folder import NAME, MigrationFolder

MESSY = Path(__file__).parent / "programs" / "messy"
OF_THE_USER = ("--lr", "0.05")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "seg-thesis"
    shutil.copytree(MESSY, folder)
    (folder / "legacy.py").write_text('print "a leftover of Python 2"\n')
    return folder


def migrate(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), cwd=project, capture_output=True, text=True, timeout=600, env=environment()
    )


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "torchferry", "migrate", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "TORCHFERRY_LANG": "en"}


def states(project: Path) -> dict[str, str]:
    document = json.loads((project / NAME / "migrate.json").read_text())
    return {step["name"]: step["state"] for step in document["steps"]}


def history(project: Path) -> list[str]:
    return [run.command for run in MigrationFolder(project / NAME).runs()]


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def remove_blocker(project: Path) -> None:
    """What a user does in the converted copy."""
    copy = project.parent / "seg-thesis_npu" / "setup.py"
    copy.write_text('from setuptools import setup\n\nsetup(name="seg")\n')


@pytest.mark.long
def test_a_migration_with_a_blocker(project: Path, browser: Any) -> None:
    begun = migrate(project, "main.py", "--to", "ascend", "--steps", "3", "--", *OF_THE_USER)
    assert begun.returncode == 1, begun.stdout + begun.stderr
    assert "Stopped at convert: 1 to decide" in begun.stdout
    assert "or: ferry migrate --resume --accept TF601" in begun.stdout
    assert states(project)["run"] == "waiting"
    assert (project / NAME / "index.html").is_file()

    remove_blocker(project)
    _kill_in_step(project, "run")
    assert states(project)["run"] == "interrupted"
    _interrupt_in_step(project, "prove")

    ended = migrate(project, "--resume")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "equal bit for bit for 3 steps, seed 0, on a simulated device; not covered:" in ended.stdout
    assert states(project) == {
        **dict.fromkeys(("doctor", "scan", "ops", "convert", "run"), "unchanged"),
        "prove": "done",
        "report": "done",
    }
    assert [history(project).count(name) for name in ("scan", "ops", "convert")] == [1, 1, 1]
    _look_at_the_page(project, browser)
    _everything_runs_as_printed(project, ended.stdout)


def _kill_in_step(project: Path, name: str) -> None:
    """kill -9, as by the memory's guard: the program ends, too."""
    process = subprocess.Popen(
        command("--resume"),
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    wait_until(lambda: states(project)[name] == "interrupted")
    time.sleep(1)
    process.kill()
    process.wait()


def _interrupt_in_step(project: Path, name: str) -> None:
    """Ctrl-C, which reaches all processes of the terminal."""
    process = subprocess.Popen(
        command("--resume"),
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    wait_until(lambda: states(project)[name] == "interrupted")
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"interrupted in step {name}; `ferry migrate --resume` goes on from there" in errors


def _look_at_the_page(project: Path, browser: Any) -> None:
    if CHROMIUM is None:
        return
    text = (project / NAME / "index.html").read_text("utf-8")
    assert str(project.parent) not in text
    with quiet_pages(browser) as open_file:
        page = open_file(project / NAME / "index.html")
        assert page.inner_text("h1").split() == ["seg-thesis", "→", "ascend"]
        assert "Migrated and proved" in page.inner_text(".card")
        for stage in ("plan", "changes", "operators", "proof", "machine"):
            page.click(f"[data-stage={stage}]")
            page.wait_for_selector(f"[data-panel={stage}] .stage-head")
        page.click("[data-stage=history]")
        assert page.locator(".history tbody tr").count() == len(history(project))


def _everything_runs_as_printed(project: Path, printed: str) -> None:
    """Each command that the steps name, in the folder where the program is started."""
    commands = [line.split("$ ", 1)[1] for line in printed.splitlines() if line.strip().startswith("$ ")]
    assert len(commands) == 7
    shutil.rmtree(project.parent / "seg-thesis_npu")
    shims = project.parent / "bin"
    shims.mkdir()
    shim = shims / "ferry"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchferry "$@"\n')
    shim.chmod(0o755)
    path = f"{shims}{os.pathsep}{os.environ['PATH']}"
    for line in commands:
        done = subprocess.run(
            line, shell=True, cwd=project, capture_output=True, text=True, env={**environment(), "PATH": path}
        )
        assert done.returncode == 0, line + done.stdout + done.stderr


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    done = migrate(tmp_path, "nowhere.py", "--to", "ascend")
    assert (done.returncode, done.stderr) == (
        2,
        "ferry: nowhere.py: no such script; name the program that trains\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_resume(tmp_path: Path) -> None:
    done = migrate(tmp_path, "--resume")
    assert done.returncode == 2
    assert done.stderr.startswith("ferry: no migration folder found here; name it with --into, or start with")
