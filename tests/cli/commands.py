"""Running the installed commands as users do, and looking at what they leave behind."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
TRAIN = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nmodel.cuda()\n"
CONVERTED = "import torch\nimport torch_npu\n\nmodel = torch.nn.Linear(2, 2)\nmodel.npu()\n"
NOBODY = 65534


def command(name: str, *arguments: object) -> list[str]:
    return [str(BIN / name), *map(os.fspath, map(_text, arguments))]


def _text(argument: object) -> str | os.PathLike[str]:
    return argument if isinstance(argument, os.PathLike) else str(argument)


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "TORCHFERRY_LANG": "en", **variables}


def run(
    name: str,
    *arguments: object,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, without a terminal."""
    return subprocess.run(
        [*prefix, *command(name, *arguments)],
        cwd=cwd,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=60,
    )


def ferry(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """`ferry convert X ...` for Ascend, unless told otherwise."""
    return run("ferry", *arguments, "--to", "ascend", **options)  # type: ignore[arg-type]


def wait_until_at_work(process: subprocess.Popen[str]) -> None:
    """Return a moment after a command has begun to answer signals itself, however long Python took to start."""
    while process.poll() is None and not is_at_work(process):
        time.sleep(0.02)
    time.sleep(0.5)


def is_at_work(process: subprocess.Popen[str]) -> bool:
    """Whether a command answers signals itself, and not Python, which is still starting."""
    caught = r"^SigCgt:\s*(\w+)$"
    found = re.search(caught, Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)


def one_line(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """The command refused: exit code 2, one line on stderr that holds these words, nothing on stdout."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr


def make(folder: Path, **files: str | bytes) -> Path:
    """A folder with files; `__` in a name stands for a slash, a name without suffix gets .py."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / (name.replace("__", "/") + ("" if "." in name else ".py"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def many_files(root: Path, folders: int) -> Path:
    """A project with a hundred files in each of its folders, one of them to convert."""
    for folder in range(folders):
        (root / f"package{folder}").mkdir(parents=True)
        for number in range(100):
            text = TRAIN if number == 0 else f"value = {number}\n"
            (root / f"package{folder}" / f"module{number}.py").write_text(text)
    return root


def tree(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder: sort, permissions, time, content or target."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: object = ""
        if path.is_symlink():
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        time = 0 if path.is_dir() else status.st_mtime_ns
        found[os.fsdecode(path.relative_to(folder))] = (oct(status.st_mode), time, content)
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """File name -> bytes."""
    return {
        os.fsdecode(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def as_nobody(*folders: Path) -> tuple[str, ...]:
    """What to put before a command so that permissions bind it; root's don't."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may read everything, and setpriv is not there to become someone else")
    for folder in folders:
        os.chown(folder, NOBODY, NOBODY)
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    probe = subprocess.run([*prefix, *command("ferry", "--version")], capture_output=True)
    if probe.returncode:
        pytest.skip("another user can't run the ferry of this environment")
    return prefix
