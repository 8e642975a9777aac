"""Signals from the first line of a command to its last: one line, the shell's exit code, nothing that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# a command of its own process, as installed ones are, that does this
COMMAND = """\
import os, signal, sys, threading, time
from torchferry.cli import ending, main
sys.argv = ["ferry"]


def work(_arguments):
{work}


sys.exit(main.as_command("ferry", work, None))
"""
NOTHING_WRITTEN = "ferry: interrupted; nothing was written\n"


def command(*lines: str) -> subprocess.CompletedProcess[str]:
    code = COMMAND.format(work="\n".join(f"    {line}" for line in lines))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_anything_is_begun(number: signal.Signals) -> None:
    ended = command(f"os.kill(os.getpid(), {int(number)})", "time.sleep(60)")
    assert (ended.returncode, ended.stderr) == (128 + number, NOTHING_WRITTEN)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_threads_that_still_compute_are_not_waited_for(number: signal.Signals) -> None:
    ended = command(
        "threading.Thread(target=time.sleep, args=(50,)).start()",
        "with ending.stoppable():",
        f"    os.kill(os.getpid(), {int(number)})",
        "    time.sleep(50)",
    )
    assert (ended.returncode, ended.stderr) == (128 + number, NOTHING_WRITTEN)


def test_an_interruption_in_a_destructor_is_not_lost() -> None:
    ended = command(
        "class Thing:",
        "    def __del__(self):",
        "        signal.raise_signal(signal.SIGINT)",
        "        time.sleep(0)",
        "with ending.stoppable():",
        "    Thing()",
        "    time.sleep(50)",
    )
    assert (ended.returncode, ended.stderr) == (130, NOTHING_WRITTEN)


def test_a_second_one_does_not_break_off_the_cleaning_up() -> None:
    ended = command(
        "with ending.stoppable():",
        "    try:",
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(50)",
        "    finally:",
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(0.2); print('cleaned up')",
    )
    assert (ended.returncode, ended.stdout) == (130, "cleaned up\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_operator_that_takes_long_is_left(number: signal.Signals) -> None:
    ended = command(
        f"threading.Timer(0.2, os.kill, (os.getpid(), {int(number)})).start()",
        "import hashlib",
        "with ending.stoppable(), ending.computing():",
        "    hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)  # minutes, and Python answers no signal before its end",
    )
    assert (ended.returncode, ended.stderr) == (128 + number, NOTHING_WRITTEN)


def test_who_ignores_signals_goes_on() -> None:
    code = COMMAND.format(work="    os.kill(os.getpid(), signal.SIGINT); print('ready'); return 0")
    ignoring = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    launch = f"{ignoring}os.execv(sys.executable, [sys.executable, '-c', {code!r}])"
    ended = subprocess.run([sys.executable, "-c", launch], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ready\n", "")


@pytest.mark.parametrize(
    "variable", ["TORCHFERRY_RECORD", "TORCHFERRY_PROFILE", "TORCHFERRY_OPS", "TORCHFERRY_PROVE"]
)
@pytest.mark.parametrize("value", ["{bad", "[]"])
def test_a_variable_of_ours_that_cannot_be_read_is_one_line(variable: str, value: str) -> None:
    take_part = "from torchferry.launch.autoload import autoload; autoload()"
    ended = subprocess.run(
        [sys.executable, "-c", take_part],
        env={**os.environ, variable: value},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert ended.stderr.startswith(f"torchferry: {variable} can't be read")


def test_a_pipe_in_the_temporary_folder_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "torchferry-run-x").mkdir()
    os.mkfifo(tmp_path / "torchferry-run-x" / "lock")
    (tmp_path / "torchferry-run-y").symlink_to(tmp_path)
    code = "from torchferry.launch import program; program._remove_abandoned()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, timeout=60)
    assert ended.returncode == 0 and (tmp_path / "torchferry-run-x" / "lock").exists()


def test_the_folder_of_a_killed_launcher_is_removed(tmp_path: Path) -> None:
    (tmp_path / "torchferry-run-x").mkdir()
    (tmp_path / "torchferry-run-x" / "lock").touch()
    code = "from torchferry.launch import program; program._remove_abandoned()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=60).returncode == 0
    assert not (tmp_path / "torchferry-run-x").exists()
