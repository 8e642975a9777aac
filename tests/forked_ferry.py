"""`ferry run` and `ferry prove` in a fork of a process that has imported PyTorch, and their programs in forks of that.

For what the commands find, and what the programs do; how programs are supervised needs processes of their own.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.forking import run_and_end, run_forked
from torchferry.launch import program as launched
from torchferry.launch.supervise import Ending, Stream, run_supervised
from torchferry.proof import runs


def ferry_forked(*arguments: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this folder."""
    environment = {**os.environ, "TORCHFERRY_LANG": "en", "OMP_NUM_THREADS": "1", **variables}
    code = "import sys\nfrom tests.forked_ferry import main\nsys.exit(main())\n"
    return run_forked(code, environment, folder, map(str, arguments))


def printed_by_ferry(folder: Path, *arguments: object, **variables: str) -> str:
    """What the command prints in this folder; it must succeed."""
    ended = ferry_forked(*arguments, folder=folder, **variables)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def main() -> int:
    """The command, in this process."""
    from torchferry.cli.main import main as ferry

    launched.run_supervised = runs.run_supervised = _run_in_fork  # type: ignore[attr-defined]
    return ferry(sys.argv[1:])


def _run_in_fork(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: Stream = None,
    stderr: Stream = None,
    stdin: Stream = None,
    seconds: float | None = None,
    patient: bool = False,
    cwd: Path | None = None,
) -> Ending:
    """A script; what else there is to run has a process of its own."""
    script = Path(command[1])
    if script.suffix != ".py" or seconds is not None:
        return run_supervised(command, environment, stdout, stderr, stdin, seconds, patient, cwd=cwd)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            _forget_the_command(stdin, stdout, stderr)
            os.chdir(cwd or ".")
            run_and_end(script.read_text("utf-8"), str(script), list(command[2:]), environment)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ending(code if code >= 0 else 128 - code, left_running=0)


def _forget_the_command(*streams: Stream) -> None:
    """What it has arranged for its own end, and its streams where the program has others."""
    atexit._clear()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        if stream == subprocess.DEVNULL:
            stream = os.open(os.devnull, os.O_RDWR)
        if stream is not None:
            os.dup2(stream if isinstance(stream, int) else stream.fileno(), number)
