"""Which files are logs, in the order in which they were written."""

from __future__ import annotations

import os
import re
from pathlib import Path

from torchferry.errors import InputError

_NAME = re.compile(r"\.(?:log|out|txt)(?:\.\d+)?(?:\.gz)?$")
_NUMBERS = re.compile(r"(\d+)")


def log_files(paths: list[Path], skipped_folders: str) -> tuple[list[Path], dict[str, str]]:
    """The files that are named, and the logs below folders that are; and the folders that can't be read, with why."""
    found: dict[Path, None] = {}
    unread: dict[str, str] = {}
    skipped = re.compile(skipped_folders) if skipped_folders else None
    for path in paths:
        if path.is_dir():
            found |= dict.fromkeys(_below(path, skipped, unread))
        elif path.exists():
            found[path] = None
        else:
            raise InputError(f"{path}: no such file or folder; give a log, or the folder of logs")
    if not found and not unread:
        where = ", ".join(map(str, paths))
        raise InputError(
            f"{where}: no log there (*.log, *.out, *.txt, also with .gz); give the folder of logs"
        )
    return list(found), unread


def _below(folder: Path, skipped: re.Pattern[str] | None, unread: dict[str, str]) -> list[Path]:
    def refused(error: OSError) -> None:
        unread[os.fsdecode(error.filename)] = error.strerror or str(error)

    files: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=refused):
        folders[:] = [name for name in folders if not (skipped and skipped.fullmatch(name))]
        files += [Path(place, name) for name in names if _NAME.search(name)]
    return sorted(files, key=lambda file: [_written(file.name), str(file)])


def _written(name: str) -> list[int | str]:
    """plog-7_20240101.log comes before plog-7_20240102.log and plog-12_...: the order in which a process wrote them."""
    parts = _NUMBERS.split(name)
    return [part.zfill(24) if part.isdigit() else part for part in parts]
