"""Runs a vendor's command so that it can't harm the doctor: it may hang, print without end, or lie beside the program."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

SMI_SECONDS = 15
_LONGEST = 1 << 20  # bytes of its output that are read
_USUAL_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Output(NamedTuple):
    """What a command has answered."""

    code: int | None  # below 0: a signal ended it; None: it took too long
    text: str


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """Where a command lies: by PATH, but never in the folder in which the user works, then in the usual folders."""
    listed = [folder for folder in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    for folder in dict.fromkeys((*listed, *_USUAL_FOLDERS)):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def run_command(
    command: Sequence[str], environment: Mapping[str, str], seconds: float = SMI_SECONDS
) -> Output | None:
    """What it answers; None: it can't be started."""
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd="/",  # Python would import what lies beside the user
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        code = _wait(process, file, seconds)
        file.seek(0)
        return Output(code, decoded(file.read(_LONGEST)))


def _wait(process: subprocess.Popen[bytes], file: IO[bytes], seconds: float) -> int | None:
    """Its exit code. Where a driver hangs, not even a kill ends its command: such a process is left alone."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() >= deadline or os.fstat(file.fileno()).st_size > 16 * _LONGEST:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
            process.returncode = process.returncode or -signal.SIGKILL  # nobody is to wait for it any more
            return None
        time.sleep(0.01)
    return process.returncode


def decoded(data: bytes) -> str:
    """The text, in UTF-8 or as Chinese systems write it."""
    for encoding in ("utf-8", "gb18030"):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("utf-8", "replace")
