"""Runs small programs in forks of a process that has imported PyTorch and done nothing else with it.

To import PyTorch, and its compiler with the first optimizer, takes many times as long as what such a program does.
What must be seen of a process from its start to its end (variables that Python or the import read, children, exit
hooks of C++) needs a process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import IO, Any, NoReturn

from torchferry import variables
from torchferry.launch.autoload import autoload

ROOT = Path(__file__).parents[1]
_SECONDS = 1800  # far more than any takes on a busy machine


def run_forked(
    script: Path | str, environment: Mapping[str, str], folder: Path = ROOT, arguments: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a file, or code, with this environment and these arguments in this folder."""
    with TemporaryDirectory() as place:
        printed = [Path(place) / name for name in ("stdout", "stderr")]
        request = {
            "file": str(script) if isinstance(script, Path) else "<string>",
            "code": script.read_text("utf-8") if isinstance(script, Path) else script,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
            "printed": [str(file) for file in printed],
        }
        if _server().poll() is not None:  # what runs programs in this process ends every child of it
            _server.cache_clear()
        server = _server()
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(
            [str(script)], code, *(file.read_text("utf-8") for file in printed)
        )


def run_module_forked(
    module: str, *arguments: str, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """As `python -m` runs it, in the root of the repository."""
    code = f"import runpy\nrunpy.run_module({module!r}, run_name='__main__', alter_sys=True)\n"
    return run_forked(code, environment, arguments=arguments)


@cache
def _server() -> subprocess.Popen[str]:
    """One for this process; it ends when its input does."""
    command = [sys.executable, "-m", "tests.forking"]
    kept = {name: value for name, value in os.environ.items() if name not in variables.ALL}
    environment = {**kept, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server


def main() -> None:
    """Serve: a request is a line, and so is the exit code that answers it."""
    import torch._dynamo  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            with _ending():
                _become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """A fork never goes on as the process that it was made of."""
    try:
        yield
    finally:
        os._exit(1)


def _become(request: dict[str, Any]) -> None:
    with contextlib.ExitStack() as files:
        _redirect([files.enter_context(open(name, "w")) for name in request["printed"]])
    os.chdir(request["folder"])
    run_and_end(request["code"], request["file"], request["arguments"], request["environment"])


def run_and_end(code: str, file: str, arguments: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Run the program in this process, a fork, and end it."""
    status = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        signal.alarm(_SECONDS)  # what hangs is ended, and answered with the signal
        status = _run(code, file, arguments)
        atexit._run_exitfuncs()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect(files: list[IO[str]]) -> None:
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, file in enumerate(files, start=1):
        os.dup2(file.fileno(), number)


def _run(code: str, file: str, arguments: list[str]) -> int:
    """What `import torch` calls at its end, then the program; its exit code."""
    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    sys.argv = [file, *arguments]
    sys.path[0] = str(Path(file).parent) if os.path.isfile(file) else ""
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    try:
        autoload()
        exec(compile(code, file, "exec"), vars(module))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
