"""A toolkit that can be stood in for: which libraries it has, from its libraries.toml. Imports no torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.emulate.programs import EmulatedProgram, make_programs

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
    parts: tuple[ToolkitLibrary, ...]
    home: Mapping[str, tuple[str, ...]]  # variable that names a folder of the toolkit -> folders in that
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
        """Where its C++ is."""
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
    """Those that there are."""
    return sorted(path.parent.name for path in _FOLDER.glob(f"*/{TABLE}"))


def load(name: str) -> Toolkit:
    """The toolkit of this name, one of `names()`."""
    folder = _FOLDER / name
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    data: dict[str, Any] = toml.loads((folder / TABLE).read_text("utf-8"))
    return Toolkit(
        folder,
        data["name"],
        tuple(data["headers"]),
        data["configure"],
        data["uses"],
        data["share_randomness"],
        tuple(map(_part, data["libraries"])),
        {variable: tuple(folders) for variable, folders in data.get("home", {}).items()},
        tuple(
            EmulatedProgram(row["home"], row["place"], tuple(row["beside"]), row["module"])
            for row in data.get("programs", ())
        ),
    )


def _part(row: dict[str, Any]) -> ToolkitLibrary:
    return ToolkitLibrary(
        row["name"],
        tuple(row.get("folders", ())),
        tuple(row.get("links", ())),
        row.get("torch", False),
        row.get("entries", False),
    )
