"""How a report was made: the command, the versions, the commit and the date, without what names the machine or its user."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from torchferry import __version__
from torchferry.report.safe import one_line
from torchferry.source.commit import git_folders, head_commit
from torchferry.text import Text

EPOCH = "SOURCE_DATE_EPOCH"  # the time of reports that are to be the same each time, as reproducible builds have it
_ABSOLUTE = re.compile(r"(?:^|(?<=[\s\"'=:,(\[]))/[^\s\"'<>,;:=()\[\]]+")
COMMAND, DATE, VERSIONS = Text("Command", "命令"), Text("Date", "日期"), Text("Versions", "版本")
COMMIT = Text("Commit", "提交")


@dataclass(frozen=True)
class Provenance:
    """What a reader needs to make the report again."""

    command: str = ""
    torchferry: str = ""
    python: str = ""
    torch: str = ""  # empty: PyTorch is not installed
    commit: str = ""  # of the folder where the command ran; empty: no git repository
    date: str = ""

    @property
    def versions(self) -> str:
        """The versions in one line."""
        known = (("TorchFerry", self.torchferry), ("Python", self.python), ("PyTorch", self.torch))
        return ", ".join(f"{name} {version}" for name, version in known if version)

    @property
    def rows(self) -> list[tuple[Text, str]]:
        """What is known, by its name."""
        rows = [
            (COMMAND, self.command),
            (DATE, self.date),
            (VERSIONS, self.versions),
            (COMMIT, self.commit[:12]),
        ]
        return [(name, value) for name, value in rows if value]


def this_run() -> Provenance:
    """The process that calls, in its current folder."""
    return Provenance(
        command=command_line(sys.argv),
        torchferry=__version__,
        python=platform.python_version(),
        torch=_torch_version(),
        commit=commit_of(Path.cwd()),
        date=now(),
    )


def now() -> str:
    """The time in UTC, to the minute."""
    stamp = os.environ.get(EPOCH, "")
    seconds = int(stamp) if stamp.isdigit() else time.time()
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def command_line(words: list[str]) -> str:
    """The command as it can be typed again in the project's folder."""
    name = PurePath(words[0]).name if words else ""
    start = "ferry" if name in ("ferry", "__main__.py", "") else name
    return one_line(shlex.join([start, *map(without_folders, words[1:])]))


def without_folders(text: str) -> str:
    """Text whose absolute paths are relative to the current folder, or only the last part of them."""
    return _ABSOLUTE.sub(lambda match: short_path(match[0]), text)


def short_path(path: str) -> str:
    """A path as a reader on another machine needs it: below the current folder, else its last part."""
    if not os.path.isabs(path):
        return path
    here = os.getcwd()
    if here != os.sep and os.path.commonpath([here, path]) == here:
        return os.path.relpath(path, here)
    return os.path.basename(path.rstrip(os.sep)) or path


@cache
def _torch_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def commit_of(folder: Path) -> str:
    """The commit that is checked out in a folder; empty if there is none."""
    found = git_folders(folder)
    return head_commit(found) if found else ""
