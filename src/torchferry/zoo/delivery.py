"""A delivery as checks see it: its files, its code, the zoo that it is for."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, PythonModule
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo.evidence.reading import SUFFIXES
from torchferry.zoo.place import Place, parse_place

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
    def place(self) -> Place:
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
