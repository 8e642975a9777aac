"""Which files are logs, in the order in which they were written."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from torchferry.errors import InputError

_NAME = re.compile(r"\.(?:log|out|err|txt)(?:\.\d+)?(?:\.(?:gz|bz2|xz|zst))?$")
_NUMBERS = re.compile(r"(\d+)")


def log_files(paths: list[Path], skipped_folders: str) -> tuple[list[Path], dict[str, str]]:
    """The files that are named, and the logs below folders that are; and what can't be read, with why."""
    found: dict[object, Path] = {}
    unread: dict[str, str] = {}
    skipped = re.compile(skipped_folders) if skipped_folders else None
    for path in paths:
        if path.is_dir():
            for file in _below(path, skipped, unread):
                found.setdefault(_identity(file), file)
        elif path.exists():
            found.setdefault(_identity(path), path)
        else:
            raise InputError(f"{path}: no such file or folder; give a log, or the folder of logs")
    if not found and not unread:
        where = ", ".join(map(str, paths))
        raise InputError(
            f"{where}: no log there (*.log, *.out, *.err, *.txt, also packed); give the folder of logs"
        )
    return list(found.values()), unread


def _below(folder: Path, skipped: re.Pattern[str] | None, unread: dict[str, str]) -> list[Path]:
    def refused(error: OSError) -> None:
        unread[os.fsdecode(error.filename)] = error.strerror or str(error)

    files: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=refused):
        folders[:] = [name for name in folders if not (skipped and skipped.fullmatch(name))]
        for file in (Path(place, name) for name in names if _NAME.search(name)):
            if _is_no_file(file):
                unread[str(file)] = "a pipe or a device"
            else:
                files.append(file)
    return sorted(files, key=lambda file: [_written(file.name), str(file)])


def _is_no_file(path: Path) -> bool:
    """A pipe or a device: to read it may never end."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:  # said when it is read
        return False


def _identity(file: Path) -> object:
    """The same for all names of a file."""
    try:
        found = os.stat(file)
    except OSError:
        return file
    return found.st_dev, found.st_ino


def _written(name: str) -> list[int | str]:
    """plog-7_20240101.log comes before plog-7_20240102.log and plog-12_...: the order in which a process wrote them."""
    parts = _NUMBERS.split(name)
    return [part.zfill(24) if part.isdigit() else part for part in parts]
