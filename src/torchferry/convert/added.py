"""Files that a conversion adds to a project: what is in them, and names that nothing of the user's has."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from torchferry.outcome import FileRecord, FileStatus, Hunk


@dataclass(frozen=True)
class AddedFile:
    """The content of a file that was not there before."""

    data: bytes
    executable: bool = False
    may_exist: bool = (
        False  # a file of that name in the project itself is one of an earlier conversion, and as good
    )

    def record(self, path: str) -> FileRecord:
        """The file as reports list it: every line of it is new."""
        lines = tuple(("+", "", line) for line in self.data.decode("utf-8").splitlines())
        return FileRecord(path, FileStatus.ADDED, hunks=(Hunk(1, 1, lines),))


class TakenNames:
    """The paths that a project has, as file systems compare them that know no upper case."""

    def __init__(self, paths: Iterable[str], folder: str = "") -> None:
        self._folder = folder  # where to look for files that the paths leave out, "" for nowhere
        self._paths = {_key(path) for path in paths}

    def __contains__(self, path: str) -> bool:
        if _key(path) in self._paths:
            return True
        return bool(self._folder) and os.path.lexists(os.path.join(self._folder, path))

    def free(self, path: str) -> str:
        """The path itself, or with a number before its suffix the first that is not taken."""
        stem, suffix = posixpath.splitext(path)
        number, free = 1, path
        while free in self:
            number += 1
            free = f"{stem}_{number}{suffix}"
        return free


def _key(path: str) -> str:
    return path.replace(os.sep, "/").casefold()
