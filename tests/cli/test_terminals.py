"""Commands on terminals and in logs: how wide, in which colours and characters they print."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.journey.messy_repository import write_messy_repository

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7])m")


def environment(**variables: str) -> dict[str, str]:
    hidden = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TORCHFERRY_LANG", "LANG", "PYTHONIOENCODING")
    ours = {name: value for name, value in os.environ.items() if name not in hidden and name[:3] != "LC_"}
    return {**ours, "TERM": "xterm-256color", "LANG": "en_US.UTF-8", "PYTHONUTF8": "1", **variables}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "torchferry", *words]


def on_terminal(folder: Path, *words: str, width: int = 200, **variables: str) -> str:
    """What a terminal of this width is sent."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        command(*words), cwd=folder, env=environment(**variables), stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    sent = b""
    try:
        while data := os.read(master, 1 << 16):
            sent += data
    except OSError:  # Linux's way to say that nobody writes there any more
        pass
    assert process.wait() in (0, 3)
    os.close(master)
    return sent.decode()


def on_pipe(folder: Path, *words: str, encoding: str = "utf-8", **variables: str) -> str:
    done = subprocess.run(command(*words), cwd=folder, env=environment(**variables), capture_output=True)
    assert done.returncode in (0, 3), done.stderr
    assert b"Traceback" not in done.stderr
    return done.stdout.decode(encoding)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    write_messy_repository(folder / "repository")
    return folder


SCAN = ("scan", "repository", "--to", "ascend")


def test_a_wide_terminal(folder: Path) -> None:
    from rich.cells import cell_len

    sent = on_terminal(folder, *SCAN)
    lines = [_ESCAPE.sub("", line).rstrip("\r") for line in sent.split("\n")]
    assert max(map(cell_len, lines)) <= 110
    assert _COLOUR.search(sent)


@pytest.mark.parametrize(
    ("words", "variables", "has_escapes", "has_colours"),
    [
        pytest.param((), {"NO_COLOR": "1"}, True, False, id="NO_COLOR"),
        pytest.param((), {"TERM": "dumb"}, False, False, id="dumb"),
        pytest.param(("--color", "never"), {"FORCE_COLOR": "1"}, False, False, id="never"),
    ],
)
def test_terminals_with_less(
    words: tuple[str, ...], variables: dict[str, str], has_escapes: bool, has_colours: bool, folder: Path
) -> None:
    sent = on_terminal(folder, "vendors", *words, **variables)
    assert "ascend" in sent
    assert bool(_ESCAPE.search(sent)) == has_escapes
    assert bool(_COLOUR.search(sent)) == has_colours


@pytest.mark.parametrize(("words", "variables"), [(("--color", "always"), {}), ((), {"FORCE_COLOR": "1"})])
def test_colours_in_a_log(words: tuple[str, ...], variables: dict[str, str], folder: Path) -> None:
    plain, coloured = on_pipe(folder, *SCAN), on_pipe(folder, *SCAN, *words, **variables)
    assert not _ESCAPE.search(plain)
    assert _COLOUR.search(coloured)
    assert _ESCAPE.sub("", coloured) == plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])
def test_streams_that_are_not_utf8(encoding: str, folder: Path) -> None:
    variables = {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding, "LANG": "zh_CN"}
    shown = on_pipe(folder, *SCAN, encoding=encoding, **variables)
    assert "?" not in shown and "─" not in shown and "→" not in shown
    assert ("阻塞" in shown or "决定" in shown) == (encoding == "gbk")
    assert ("Decisions" in shown) == (encoding != "gbk")


def test_the_c_locale(folder: Path) -> None:
    variables = {"LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TORCHFERRY_LANG": "zh"}
    shown = on_pipe(folder, "vendors", encoding="ascii", **variables)
    assert "Known accelerators" in shown and "-----" in shown
