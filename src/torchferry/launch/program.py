"""A user's program: its command line, run at a place, and what its processes used of the device. Imports no torch."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.building.build import Progress
from torchferry.errors import InputError
from torchferry.launch.environment import child_environment, environment_at
from torchferry.launch.place import Place, build_for
from torchferry.launch.settings import StepLimit
from torchferry.launch.supervise import run_supervised
from torchferry.sim.summary import RunOutcome, RunSummary, read_parts
from torchferry.text import Text

_ALONE = "--standalone"  # torchrun chooses a port of its own
_PROCESSES = "--nproc-per-node"
_FOLDER_PREFIX = "torchferry-run-"
_FOLDER_LOCK = "lock"


@dataclass(frozen=True)
class Program:
    """A script or a module, in this many processes if torchrun is to start it."""

    target: str
    is_module: bool
    arguments: tuple[str, ...]
    torchrun: tuple[str, ...] | None  # options of torchrun; None: without it

    def command(self) -> list[str]:
        """The command line; the program sees itself as `python script` would show it."""
        module = ["-m"] if self.is_module else []
        torchrun = [] if self.torchrun is None else ["-m", "torch.distributed.run", *self.torchrun]
        return [sys.executable, *torchrun, *module, self.target, *self.arguments]

    @property
    def processes(self) -> int:
        """How many torchrun starts on this machine; 0 without it."""
        return 0 if self.torchrun is None else int(self.torchrun[self.torchrun.index(_PROCESSES) + 1])

    def shown(self) -> str:
        """How its user calls it."""
        return shlex.join([*(["-m"] if self.is_module else []), self.target, *self.arguments])


def program_of(
    words: Sequence[str], is_module: bool = False, torchrun: tuple[str, ...] | None = None
) -> Program:
    """The script or module that these words name, with its arguments; a script must be there."""
    if not is_module:
        check_script(words[0])
    return Program(words[0], is_module, tuple(words[1:]), torchrun)


def check_script(script: str) -> None:
    """A script must be there before anything is built for it."""
    if not os.path.exists(script):
        raise InputError(
            Text(
                f"no such script: {script}; use -m to run a module by name",
                f"没有该脚本：{script}；按名称运行模块请用 -m",
            )
        )


def torchrun_words(processes: int, others: Sequence[str] = (), alone: bool = True) -> tuple[str, ...]:
    """torchrun's own options; `alone`: the processes meet on this machine."""
    return (*([_ALONE] if alone else []), _PROCESSES, str(processes), *others)


def run_at(
    place: Place, program: Program, progress: Progress | None = None, steps: int | None = None
) -> RunSummary:
    """Run a program to its end, on that device in every Python process that it starts.

    After so many steps, if a number is given, it is ended. What the processes used of the device is known where it is simulated or emulated.
    """
    machine, limit = place.machine(), () if steps is None else (StepLimit(steps),)
    if machine is None:
        return RunSummary(_outcome_of(program, place, environment_at(place, *limit)), (), 0)
    assert place.vendor is not None
    build_for(place, progress)
    with _summary_folder() as folder:
        settings = replace(machine, summary_folder=str(folder))
        extra = {name: value for part in limit for name, value in part.environment().items()}
        environment = child_environment(os.environ, place.vendor, settings, place.layer, extra)
        return RunSummary(_outcome_of(program, place, environment), *read_parts(folder))


def _outcome_of(program: Program, place: Place, environment: Mapping[str, str]) -> RunOutcome:
    started = time.monotonic()
    ending = run_supervised(program.command(), environment, patient=True)
    return RunOutcome(
        place.vendor_name,
        place.device_type,
        ending.exit_code,
        round(time.monotonic() - started, 3),
        ending.left_running,
        converted=place.converted,
        means=place.kind.value,
    )


@contextmanager
def _summary_folder() -> Iterator[Path]:
    """A temporary folder, locked as long as this process lives; those of launchers that were killed are removed."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
    try:
        aside = folder / f"{_FOLDER_LOCK}.aside"
        with aside.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            aside.rename(folder / _FOLDER_LOCK)  # others see it locked from the beginning
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Those of this user alone: anybody may put anything into a shared temporary folder."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError), _own_folder(folder) as place:
            lock = os.open(
                _FOLDER_LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place
            )
            with open(lock) as file:
                if stat.S_ISREG(os.fstat(lock).st_mode):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)


@contextmanager
def _own_folder(folder: Path) -> Iterator[int]:
    """A folder, no link to one, that belongs to this user."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(place).st_uid != os.geteuid():
            raise PermissionError
        yield place
    finally:
        os.close(place)
