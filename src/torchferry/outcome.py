"""What a run of scan or convert learned: the thing that every report renders and findings.json holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchferry.finding import Finding


class FileStatus(str, Enum):
    """What became of one file."""

    CHANGED = "changed"
    ADDED = "added"  # made by the conversion
    UNCHANGED = "unchanged"  # looked at, nothing to change
    FAILED = "failed"  # could not be read, parsed or safely rewritten; copied as it was


@dataclass(frozen=True)
class Hunk:
    """A stretch of changed lines with context; lines carry no line ending."""

    old_start: int  # 1-based line number of the first old line
    new_start: int
    # (tag, old, new); tag is " ", "~" changed, "+" added, "-" removed
    lines: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class FileRecord:
    """One file that held anything of interest."""

    path: str
    status: FileStatus
    reason: str = ""
    hunks: tuple[Hunk, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything learned about one project for one vendor."""

    command: str  # "scan" or "convert"
    vendor: str
    project: str  # name of the folder or file that was read
    files_seen: int
    files: tuple[FileRecord, ...]
    findings: tuple[Finding, ...]
