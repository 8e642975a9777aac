"""A toolkit that can be stood in for: which libraries it has, from its libraries.toml. Imports no torch."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchferry.settings import from_plain
from torchferry.vendors.schema import toml_module

# With which interpreter, and from which folder of modules, a program runs: those of the process that starts it.
PYTHON, TOOLKIT = "TORCHFERRY_PYTHON", "TORCHFERRY_TOOLKIT"
_SCRIPT = """#!/bin/sh
# Set by TorchFerry in processes with an emulated device.
exec "${python:?is not set: this runs only below a process with an emulated device}" -I "${toolkit}/{module}/__main__.py" "$@"
"""
_EXECUTABLE = 0o755


@dataclass(frozen=True)
class EmulatedProgram:
    """A program of a toolkit that the plugin starts by its name."""

    home: str  # the variable that names the folder
    place: str  # of the program, below that
    beside: tuple[str, ...]  # files that the plugin wants to see there, and does not open
    module: str  # a package in the toolkit's folder here


def make_programs(programs: Sequence[EmulatedProgram], homes: Mapping[str, Path]) -> None:
    """Write the programs below the folders that their toolkit has there."""
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
    """Let this process and those that it starts find the programs by their names."""
    if not programs:
        return
    environment[PYTHON], environment[TOOLKIT] = sys.executable, str(modules)
    before = [folder for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder]
    own = [str((homes[program.home] / program.place).parent) for program in programs]
    environment["PATH"] = os.pathsep.join([*own, *(folder for folder in before if folder not in own)])


TABLE = "libraries.toml"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ToolkitLibrary:
    """One library of a toolkit."""

    name: str  # libname.so
    folders: tuple[str, ...] = ()  # of its sources, below csrc
    links: tuple[str, ...] = ()  # other libraries of the toolkit, that come before it
    torch: bool = False  # whether it is written with PyTorch
    entries: bool = False  # whether further sources are generated for it


@dataclass(frozen=True)
class Toolkit:
    """What stands for a vendor's toolkit."""

    folder: Path
    name: str
    headers: tuple[str, ...]  # below the plugin's folder
    configure: str
    uses: str
    share_randomness: str
    libraries: tuple[ToolkitLibrary, ...]
    home: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # variable that names a folder of the toolkit -> folders in that
    programs: tuple[EmulatedProgram, ...] = ()

    def home_folders(self, place: Path) -> dict[str, Path]:
        """Variable -> the folder that it names, below this place."""
        return {variable: place / "home" / variable.lower() for variable in self.home}

    def make_home(self, place: Path) -> None:
        """Make these folders, and the programs in them."""
        for variable, folder in self.home_folders(place).items():
            for name in ("", *self.home[variable]):
                (folder / name).mkdir(parents=True, exist_ok=True)
        make_programs(self.programs, self.home_folders(place))

    @property
    def sources(self) -> Path:
        """The folder of its C++."""
        return self.folder / "csrc"

    def entry_writer(self) -> Callable[[Path], Sequence[Path]] | None:
        """What writes generated sources into a folder; None if nothing is generated."""
        if not (self.folder / "entries.py").is_file():
            return None
        module = importlib.import_module(f"torchferry.emulate.{self.folder.name}.entries")
        writer: Callable[[Path], Sequence[Path]] = module.write_entries
        return writer

    def entry_tables(self) -> tuple[Path, ...]:
        """The files that decide what is generated."""
        found = (path for pattern in ("*.tsv", "*.py", "operators/*") for path in self.folder.glob(pattern))
        return tuple(sorted(path for path in found if path.is_file()))


def names() -> list[str]:
    """The toolkits that can be stood in for."""
    return sorted(path.parent.name for path in _FOLDER.glob(f"*/{TABLE}"))


def load(name: str) -> Toolkit:
    """The toolkit of this name, one of `names()`."""
    folder = _FOLDER / name
    data: dict[str, Any] = toml_module().loads((folder / TABLE).read_text("utf-8"))
    return from_plain(Toolkit, {"folder": folder, **data})
