"""Starts a program on the simulated device: what to run, in which environment. Imports no torch."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.sim.autoload import autoload
from torchferry.sim.build import library_path
from torchferry.sim.build_progress import Progress
from torchferry.sim.environment import VARIABLE, SimSettings
from torchferry.sim.shims import shim_folders
from torchferry.sim.summary import RunOutcome, Summary, read_parts
from torchferry.sim.supervise import run_supervised
from torchferry.sim.toolchain import find_torch
from torchferry.vendors.model import Vendor

_STARTUP = Path(__file__).parent / "startup"
_FIRST_WITH_AUTOLOAD = (2, 5)
_AUTOLOAD_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_FOLDER_PREFIX = "torchferry-run-"
_FOLDER_LOCK = "lock"


@dataclass(frozen=True)
class Program:
    """What the user wants to run: a script or a module, in this many processes if torchrun is to start it."""

    target: str
    is_module: bool
    arguments: tuple[str, ...]
    torchrun: tuple[str, ...] | None  # options of torchrun; None: without it

    def command(self) -> list[str]:
        """The command line; the program sees itself as `python script` would show it."""
        module = ["-m"] if self.is_module else []
        torchrun = [] if self.torchrun is None else ["-m", "torch.distributed.run", *self.torchrun]
        return [sys.executable, *torchrun, *module, self.target, *self.arguments]


def launch(
    program: Program, vendor: Vendor, settings: SimSettings, progress: Progress | None = None
) -> Summary:
    """Run a program to its end, on the simulated device in every Python process that it starts."""
    library_path(progress)
    with _summary_folder() as folder:
        settings = replace(settings, summary_folder=str(folder))
        environment = child_environment(os.environ, vendor, settings)
        started = time.monotonic()
        ending = run_supervised(program.command(), environment)
        seconds = time.monotonic() - started
        outcome = RunOutcome(
            vendor.name, vendor.device_type, ending.exit_code, round(seconds, 3), ending.left_running
        )
        parts, unreported = read_parts(folder)
        return Summary(outcome, parts, unreported)


def child_environment(ours: Mapping[str, str], vendor: Vendor, settings: SimSettings) -> dict[str, str]:
    """The environment that makes every Python process below activate the simulator when it imports torch."""
    folders = shim_folders(vendor)
    added = {VARIABLE: settings.encode()}
    if not _torch_calls_us_alone(ours):
        folders = [*folders, _STARTUP]
        added[_AUTOLOAD_SWITCH] = "0"
    path = [*map(str, folders), *filter(None, [ours.get("PYTHONPATH")])]
    return {**ours, **added, "PYTHONPATH": os.pathsep.join(path)}


def _torch_calls_us_alone(environment: Mapping[str, str]) -> bool:
    """Whether `import torch` calls `autoload`, and no vendor's real plugin, which would want the device for itself."""
    from importlib.metadata import entry_points

    if find_torch().release < _FIRST_WITH_AUTOLOAD or environment.get(_AUTOLOAD_SWITCH, "1") == "0":
        return False
    ours = f"{autoload.__module__}:{autoload.__name__}"
    return {entry.value for entry in entry_points(group="torch.backends")} == {ours}


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
    for lock in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*/{_FOLDER_LOCK}"):
        with suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent)
