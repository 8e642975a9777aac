"""A delivery as checks see it: its files, its code, the zoo that it is for."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchferry.errors import InputError
from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, PythonModule
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo.evidence import SUFFIXES

# The folder of a delivery: which framework, domain and model it names.


@dataclass(frozen=True)
class DeliveryPath:
    """The parts of the path that the zoo's layout names."""

    framework: str
    domain: str
    model: str
    fixed: bool  # whether the parts between them are those of the layout


def parse_place(path: Path, table: ZooTable) -> DeliveryPath:
    """The parts of a path that ends as the layout says; what is missing is ""."""
    wanted = table.layout.split("/")
    given = Path(os.path.abspath(path)).parts[-len(wanted) :]
    found = {"framework": "", "domain": "", "model": ""}
    fixed = len(given) == len(wanted)
    for name, part in zip(wanted, given, strict=False):
        key = name.strip("{}")
        if key in found:
            found[key] = part
        else:
            fixed = fixed and name == part
    return DeliveryPath(**found, fixed=fixed)


def checked_place(path: Path, table: ZooTable) -> DeliveryPath:
    """The same for a folder that is to be made: a path that does not fit is refused."""
    place = parse_place(path, table)
    if not place.fixed or not place.model:
        raise InputError(
            f"{path}: {table.name} wants {table.layout}, as in {_example(table)}; name the folder so"
        )
    if place.framework not in table.frameworks:
        known = ", ".join(table.frameworks)
        meant = _meant(place.framework, table.frameworks)
        raise InputError(
            f"{path}: '{place.framework}' is no framework of {table.name}; known: {known}{meant}"
        )
    meant = _meant(place.domain, table.domains)
    if meant:
        raise InputError(f"{path}: '{place.domain}' is no domain of {table.name}{meant}")
    if not re.fullmatch(r"\w[\w.+-]*", place.model):
        raise InputError(f"{path}: '{place.model}' is no name for a model; use letters, digits, . - + _")
    return place


def closest(name: str, known: tuple[str, ...]) -> str:
    """The known name that another one was most probably meant to be; "": it is one, or is like none."""
    if name in known:
        return ""
    folded = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.8)
    return folded[found[0]] if found else ""


def _meant(name: str, known: tuple[str, ...]) -> str:
    close = closest(name, known)
    return f"; did you mean {close}?" if close else ""


def _example(table: ZooTable) -> str:
    return table.layout.format(framework=table.frameworks[0], domain=table.domains[0], model="ResNet50")


FRAMEWORK = "PyTorch"  # the one whose programs are converted and read
READMES = {"zh": "README.md", "en": "README.en.md"}
REQUIREMENTS = "requirements.txt"
PLACEHOLDER = "<TODO"
_SKIPPED = {".git", ".hg", ".svn"}
_NO_TRAINING = {"test", "tests", "doc", "docs"}  # folders whose code shows nothing of a training
_WELL_KNOWN = frozenset({"torch"})


@dataclass(frozen=True)
class Delivery:
    """One folder of a model zoo."""

    root: Path
    vendor: Vendor
    table: ZooTable
    tolerance: float | None = None  # None: the zoo's own

    @cached_property
    def place(self) -> DeliveryPath:
        """What the folder's path names."""
        return parse_place(self.root, self.table)

    @property
    def is_read(self) -> bool:
        """Whether the programs of its framework can be read; one that is not known is judged as PyTorch's."""
        return self.place.framework == FRAMEWORK or self.place.framework not in self.table.frameworks

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files, relative, with forward slashes; what can't be opened without harm, as a pipe, is left out."""
        return tuple(sorted(name for name, mode in self._walk() if stat.S_ISREG(mode)))

    @cached_property
    def links(self) -> tuple[str, ...]:
        """All links, to files and to folders; no link is followed."""
        return tuple(sorted(name for name, mode in self._walk() if stat.S_ISLNK(mode)))

    def _walk(self) -> Iterator[tuple[str, int]]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in (*folders, *names):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    yield os.path.relpath(path, self.root).replace(os.sep, "/"), os.lstat(path).st_mode

    def read(self, name: str) -> str | None:
        """The text of a file, whatever the case of its name; None: it is not there, or can't be read."""
        found = next((each for each in self.files if each.casefold() == name.casefold()), None)
        try:
            return None if found is None else (self.root / found).read_text("utf-8", "replace")
        except OSError:
            return None

    def log(self, name: str) -> Path | None:
        """The log of this name among the scripts, whatever its form."""
        for suffix in SUFFIXES:
            path = f"{self.table.run_folder}/{name}{suffix}"
            if path in self.files:
                return self.root / path
        return None

    @cached_property
    def training(self) -> dict[str, PythonModule]:
        """The Python files that may have to do with training."""
        return {
            name: module
            for name, module in self.modules.items()
            if not _NO_TRAINING & set(name.split("/")[:-1])
        }

    @cached_property
    def modules(self) -> dict[str, PythonModule]:
        """Every Python file that can be parsed."""
        found = {}
        for name in self.files:
            if name.endswith(".py"):
                try:
                    found[name] = PythonModule(decode((self.root / name).read_bytes()), _WELL_KNOWN)
                except (OSError, UndecodableError, ParseError):
                    continue
        return found
