"""A delivery as checks see it: its files, its code, the zoo that it is for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, PythonModule
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo.place import Place, parse_place

READMES = {"zh": "README.md", "en": "README.en.md"}
REQUIREMENTS = "requirements.txt"
TEST_SCRIPT = "test/short_training.sh"
EVIDENCE = "evidence"
ORIGINAL, PORT = "original", "port"  # files of that folder
PLACEHOLDER = "<TODO"
_SKIPPED = {".git", ".hg", ".svn"}
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

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files, relative, with forward slashes; links are not followed."""
        return tuple(sorted(self._walk()))

    def _walk(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), self.root).replace(os.sep, "/")

    def read(self, name: str) -> str | None:
        """The text of a file; None: it is not there, or can't be read."""
        try:
            return (self.root / name).read_text("utf-8", "replace")
        except OSError:
            return None

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
