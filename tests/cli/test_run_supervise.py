"""A program under `ferry run`: its exit code, its signals, and what it leaves running. No torch needed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchferry.launch.supervise import run_supervised

LAUNCHER = (
    "import os, sys\n"
    "from torchferry.cli.ending import stoppable\n"
    "from torchferry.launch import supervise\n"
    "supervise._SECONDS_TO_END_BY_ITSELF = supervise._SECONDS_AFTER_SIGTERM = 1.0\n"
    "with stoppable():\n"
    "    program = [sys.executable, '-c', sys.argv[1]]\n"
    "    ending = supervise.run_supervised(program, os.environ, patient={patient})\n"
    "print(f'left {{ending.left_running}}, told {{ending.signal}}' if ending.signal else f'left {{ending.left_running}}')\n"
    "sys.exit(ending.exit_code)\n"
)
# a program that says when it is ready, then waits
READY = "import os, signal, sys, time\nready = lambda: open(os.environ['READY'], 'w').close()\n"
# a child in a session of its own, as torchrun's workers are
ORPHAN = (
    "import subprocess\n"
    "child = subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)\n"
    "open(os.environ['ORPHAN'], 'w').write(str(child.pid))\n"
)


def start(tmp_path: Path, program: str, patient: bool = True, **options: int) -> subprocess.Popen[str]:
    variables = {
        "READY": str(tmp_path / "ready"),
        "ORPHAN": str(tmp_path / "orphan"),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-c", LAUNCHER.format(patient=patient), READY + program],
        env={**os.environ, **variables},
        text=True,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists() or (path.name == "orphan" and not path.read_text()):
        assert time.monotonic() < until, f"{path} never appeared"
        time.sleep(0.02)


def is_running(process: int) -> bool:
    """Also false for one that has ended and whose parent has not noticed yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_output_may_go_into_files(tmp_path: Path) -> None:
    program = "import sys; print('said'); print('complained', file=sys.stderr)"
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("wb") as err:
        ending = run_supervised([sys.executable, "-c", program], os.environ, out, err.fileno())
    assert ending.exit_code == 0
    assert (tmp_path / "out").read_text() == "said\n"
    assert (tmp_path / "err").read_text() == "complained\n"


def test_the_end_of_a_program_is_noticed_although_other_threads_take_the_word_of_it() -> None:
    ends_before_it_is_waited_for = (
        "import os, threading, time\n"
        "from torchferry.launch import supervise\n"
        "class Late(supervise._Clock):\n"
        "    def __init__(self, *given):\n"
        "        time.sleep(0.2)\n"
        "        super().__init__(*given)\n"
        "supervise._Clock = Late\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print(supervise.run_supervised(['false'], os.environ).exit_code)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", ends_before_it_is_waited_for],
        timeout=50,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "1\n", ran.stderr


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(5)", 5),
        ("raise SystemExit('no')", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("os.abort()", 134),
    ],
)
def test_the_exit_code_is_the_programs(tmp_path: Path, program: str, code: int) -> None:
    process = start(tmp_path, program)
    process.communicate(timeout=60)
    assert process.returncode == code


def test_the_launcher_lets_no_process_go_unnoticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "default")  # as developers set it
    _, stderr = start(tmp_path, "pass").communicate(timeout=60)
    assert "ResourceWarning" not in stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_reaches_the_program(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = start(tmp_path, "ready(); time.sleep(60)")
    wait_for(tmp_path / "ready")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == code


def test_the_program_may_clean_up_and_choose_its_exit_code(tmp_path: Path) -> None:
    process = start(
        tmp_path,
        "try:\n"
        "    ready(); time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(0.5); print('saved'); sys.exit(3)\n",
    )
    wait_for(tmp_path / "ready")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert output.startswith("saved")
    assert process.returncode == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_does_not_end_when_told_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    ignoring = "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    process = start(tmp_path, f"{ignoring}ready(); time.sleep(60)", patient=False)
    wait_for(tmp_path / "ready")
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (137, f"left 0, told {int(number)}\n")


def test_ctrl_c_on_a_terminal_arrives_once(tmp_path: Path) -> None:
    ours, terminal = pty.openpty()
    program = (
        "count = []\n"
        "signal.signal(signal.SIGINT, lambda *_: count.append(1))\n"
        "ready()\n"
        "while not count: time.sleep(0.05)\n"
        "time.sleep(0.5)\n"  # for a second one
        "sys.exit(len(count))\n"
    )
    code = "import os, sys; os.setsid(); import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    variables = {"READY": str(tmp_path / "ready")}
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            code + f"sys.argv[1:] = [{READY + program!r}]; exec({LAUNCHER.format(patient=True)!r})",
        ],
        env={**os.environ, **variables},
        stdin=terminal,
        stdout=subprocess.DEVNULL,
    )
    os.close(terminal)
    try:
        wait_for(tmp_path / "ready")
        os.write(ours, b"\x03")
        assert process.wait(timeout=30) == 1
    finally:
        os.close(ours)


def test_what_the_program_leaves_running_is_ended(tmp_path: Path) -> None:
    process = start(tmp_path, ORPHAN.format(code="import time; time.sleep(60)"))
    output, _ = process.communicate(timeout=60)
    assert output == "left 1\n"
    assert not is_running(int((tmp_path / "orphan").read_text()))


def test_what_ends_by_itself_is_waited_for(tmp_path: Path) -> None:
    code = f"import time; time.sleep(0.5); open({str(tmp_path / 'done')!r}, 'w')"
    process = start(tmp_path, ORPHAN.format(code=code))
    output, _ = process.communicate(timeout=60)
    assert output == "left 0\n"
    assert (tmp_path / "done").exists()


def test_a_killed_program_leaves_no_orphans_that_ignore_sigterm(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    process = start(
        tmp_path, ORPHAN.format(code=code) + "time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)"
    )
    process.communicate(timeout=60)
    assert process.returncode == 137
    assert not is_running(int((tmp_path / "orphan").read_text()))


def test_a_killed_launcher_takes_the_program_with_it(tmp_path: Path) -> None:
    process = start(
        tmp_path,
        "open(os.environ['ORPHAN'], 'w').write(str(os.getpid())); ready(); time.sleep(60)",
    )
    wait_for(tmp_path / "ready")
    process.kill()
    process.communicate(timeout=30)
    program = int((tmp_path / "orphan").read_text())
    until = time.monotonic() + 20
    while is_running(program) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(program)
