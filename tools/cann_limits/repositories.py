"""Reads the files of a git repository at its newest commit, with a work tree or without."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TRIALS = "experimental/"  # sources that CANN's releases do not carry


@dataclass(frozen=True)
class Repository:
    """A git folder."""

    folder: Path

    @property
    def name(self) -> str:
        """What its origin calls it, as far as its folder says."""
        return (self.folder.parent if self.folder.name in ("repo", ".git") else self.folder).name.split("+")[
            -1
        ]

    def version(self) -> str:
        """The commit and its day."""
        return self._git("log", "-1", "--format=%H %cs").decode().strip()

    def texts(self, *suffixes: str) -> Iterator[tuple[str, str]]:
        """Path and text of the files that end so."""
        with tarfile.open(fileobj=io.BytesIO(self._git("archive", "HEAD"))) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(suffixes) and not member.name.startswith(_TRIALS):
                    content = archive.extractfile(member)
                    assert content is not None
                    yield member.name, content.read().decode("utf-8", "replace")

    def _git(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", "-C", str(self.folder), *arguments], check=True, capture_output=True
        ).stdout
