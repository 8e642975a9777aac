"""Programs of a toolkit that the plugin starts by their names: they are made below one of its folders, and put on PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# With which interpreter, and from which folder of modules, a program runs: those of the process that starts it.
PYTHON, TOOLKIT = "TORCHFERRY_PYTHON", "TORCHFERRY_TOOLKIT"
_SCRIPT = """#!/bin/sh
# Set by TorchFerry in processes with an emulated device.
exec "${python:?is not set: this runs only below a process with an emulated device}" -I "${toolkit}/{module}/__main__.py" "$@"
"""
_EXECUTABLE = 0o755


@dataclass(frozen=True)
class EmulatedProgram:
    """One of them."""

    home: str  # the variable that names the folder
    place: str  # of the program, below that
    beside: tuple[str, ...]  # files that the plugin wants to see there, and does not open
    module: str  # a package in the toolkit's folder here


def make_programs(programs: Sequence[EmulatedProgram], homes: Mapping[str, Path]) -> None:
    """Write them."""
    for program in programs:
        home = homes[program.home]
        for name in (program.place, *program.beside):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).touch()
        text = (
            _SCRIPT.replace("{python", "{" + PYTHON)
            .replace("{toolkit", "{" + TOOLKIT)
            .replace("{module}", program.module)
        )
        (home / program.place).write_text(text, "utf-8")
        (home / program.place).chmod(_EXECUTABLE)


def put_on_path(
    programs: Sequence[EmulatedProgram],
    homes: Mapping[str, Path],
    modules: Path,
    environment: MutableMapping[str, str],
) -> None:
    """For this process and those that it starts."""
    if not programs:
        return
    environment[PYTHON], environment[TOOLKIT] = sys.executable, str(modules)
    before = [folder for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder]
    own = [str((homes[program.home] / program.place).parent) for program in programs]
    environment["PATH"] = os.pathsep.join([*own, *(folder for folder in before if folder not in own)])
