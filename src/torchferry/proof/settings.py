"""What a process is to record, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

from torchferry import variables
from torchferry.launch.parts import PartSettings, hash_seed


class Weights(str, Enum):
    """What becomes of the parameters that an optimizer is given."""

    OWN = "own"  # they stay as the program made them
    SAVE = "save"  # they are kept for another run
    LOAD = "load"  # they become those that another run kept


@dataclass(frozen=True)
class ProofSettings(PartSettings):
    """What to record, where to put it, and when to stop."""

    variable: ClassVar[str] = variables.PROVE
    starts: ClassVar[str] = "torchferry.proof.recording:start"
    may_build: ClassVar[bool] = True

    folder: str  # each process that trains leaves a file here
    steps: int | None = 20  # that change weights; None: to the program's own end
    seed: int = 0
    weights: Weights = Weights.OWN
    weights_folder: str = ""
    operators_step: int = 0  # StepRecord.ordinal whose operators are recorded, too; 0: of none
    operators_rank: int | None = None  # ... in the process of this rank
    own_project: str = ""  # where the program's modules come from; "" if there is one project only
    other_project: str = ""  # ... and where they must not come from

    def environment(self) -> dict[str, str]:
        """The variables that make a process play the part."""
        return {**super().environment(), **hash_seed(self.seed)}


# Where each side of a proof runs: the original in its project, the converted program in its own.
#
# A program opens its configuration by a relative path, and a conversion writes that file, too: the
# converted program has to find the one that was written for it.

_PACKAGES = ("site-packages", "dist-packages")
IMPORTS_SUFFIX = ".imports"


@dataclass(frozen=True)
class Projects:
    """The project of the original and that of the converted program."""

    original: Path
    converted: Path

    def own(self, is_converted: bool) -> Path:
        """The one that a side belongs to."""
        return self.converted if is_converted else self.original

    def twin(self, path: Path, is_converted: bool) -> Path:
        """The file or folder of a side that corresponds to one of either; what is of neither stays."""
        for root in sorted((self.original, self.converted), key=lambda each: -len(each.parts)):
            if path.is_relative_to(root):
                return self.own(is_converted) / path.relative_to(root)
        return path

    def folder(self, here: Path, is_converted: bool) -> Path:
        """Where a side runs for a user who is here: at the same place in its own project, else at its root."""
        root = self.own(is_converted)
        outside = not any(here.is_relative_to(each) for each in (self.original, self.converted))
        holds_both = all(each.is_relative_to(here) for each in (self.original, self.converted))
        twin = self.twin(here, is_converted)
        return root if outside or holds_both or not twin.is_dir() else twin


def projects(original: str, converted: str, here: Path) -> Projects | None:
    """From where the paths of the two scripts are the same on; None where not even their names are."""
    one, other = (Path(os.path.abspath(here / each)) for each in (original, converted))
    same = 0
    while same < min(len(one.parts), len(other.parts)) - 1 and one.parts[-1 - same] == other.parts[-1 - same]:
        same += 1
    if not same or one == other:
        return None
    within = one.parts[len(one.parts) - same : -1]
    tops = [Path(*each.parts[: len(each.parts) - same]) for each in (one, other)]
    depth = 0
    if one.is_relative_to(here) and other.is_relative_to(here):
        # proj/train.py and out/proj/train.py: a project of a user who is above it begins at the first folder below
        first = Path(here, *one.relative_to(here).parts[:-1][:1])
        depth = len(first.relative_to(tops[0]).parts) if first.is_relative_to(tops[0]) else 0
    return Projects(*(top.joinpath(*within[:depth]) for top in tops))


def moved_arguments(arguments: Iterable[str], here: Path, folder: Path) -> tuple[str, ...]:
    """Relative paths that lead somewhere from where the user is, and nowhere from where the program runs, made whole."""

    def moved(text: str) -> str:
        option, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
        if not value or value.startswith("-") or os.path.isabs(value):
            return text
        is_there = os.path.lexists(here / value) and not os.path.lexists(folder / value)
        return f"{option}{equals}{here / value}" if is_there else text

    return tuple(map(moved, arguments))


def moved_search_path(
    environment: Mapping[str, str], of: Projects, here: Path, is_converted: bool
) -> dict[str, str]:
    """PYTHONPATH with the folders of the other side's project replaced by those of the own one."""
    value = environment.get("PYTHONPATH")
    if not value:
        return {}
    entries = [Path(os.path.abspath(here / entry)) for entry in value.split(os.pathsep) if entry]
    twins = [(entry, of.twin(entry, is_converted)) for entry in entries]
    moved = [str(twin if twin.exists() else entry) for entry, twin in twins]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(moved))}


def imported_from(other: Path, own: Path) -> list[str]:
    """Files of the other side's project that this process has imported though its own project has them, too."""
    inner = own if own.is_relative_to(other) else None
    found = set()
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if not isinstance(name, str) or not name.startswith(f"{other}{os.sep}"):
            continue
        path = Path(name)
        is_own = inner is not None and path.is_relative_to(inner)
        if not is_own and not set(_PACKAGES) & set(path.parts) and (own / path.relative_to(other)).is_file():
            found.add(name)
    return sorted(found)
