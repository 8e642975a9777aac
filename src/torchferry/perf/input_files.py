"""What the files are that an analysis is given: traces, tables, logs; told by what they hold, not by their names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from torchferry.errors import InputError
from torchferry.perf.tables.columns import CsvFile
from torchferry.perf.tables.kernels import is_kernel_statistic, is_kernel_table
from torchferry.perf.tables.memory import is_memory_record, is_operator_memory
from torchferry.perf.tables.operators import is_operator_details, is_step_table
from torchferry.traces.chunks import GZIP, Unpacking

PROFILE_FILE = "run.json"
PROFILE_FORMAT = "torchferry-profile"
WHAT_TO_GIVE = (
    "give a trace (.json, .json.gz), the folder of a profiler, kernel_details.csv, operator_memory.csv, a printed table "
    "of operators, or host logs"
)
_HEAD = 1 << 16
_TRACE = re.compile(rb'"traceEvents"\s*:\s*\[')
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
_RULE = re.compile(rb"^\s*-{3,}(?:\s+-{3,})+\s*$", re.MULTILINE)
_LOG_NAME = re.compile(r"\.(?:log|out)(?:\.\d+)?(?:\.gz)?$")
_RAW = re.compile(r"PROF_")  # folders of a profiler's raw data, beside those of what was made of it
_RANK_FILE = re.compile(r"profiler_info_(\d+)\.json$")
_RANK_IN_NAME = re.compile(r"(?<![a-z])rank[_-]?(\d+)(?![0-9])", re.IGNORECASE)
_DEEPEST = 6  # folders


class InputKind(Enum):
    """What a file is; the values are for messages."""

    TRACE = "a trace"
    KERNELS = "a table of kernels"
    STATISTIC = "a table of types of kernels"
    MEMORY = "a table of operators' memory"
    MEMORY_RECORD = "a record of memory"
    OPERATORS = "a table of operators"
    STEPS = "a table of steps"
    LOG = "a host log"
    PROFILE = "the record of `ferry profile`"


_TABLES = (
    (is_operator_memory, InputKind.MEMORY),
    (is_memory_record, InputKind.MEMORY_RECORD),
    (is_operator_details, InputKind.OPERATORS),
    (is_kernel_statistic, InputKind.STATISTIC),
    (is_step_table, InputKind.STEPS),
    (is_kernel_table, InputKind.KERNELS),
)


@dataclass
class FileSet:
    """Files that lie together: those of one process, but for folders with several traces."""

    folder: Path
    files: dict[InputKind, list[Path]] = field(default_factory=dict)

    def add(self, sort: InputKind, path: Path) -> None:
        """One more."""
        self.files.setdefault(sort, []).append(path)

    def of(self, sort: InputKind) -> list[Path]:
        """The files of a sort."""
        return self.files.get(sort, [])

    @property
    def rank(self) -> int | None:
        """By the file that a vendor's profiler puts beside its results, or by the folders' names."""
        for folder in (self.folder, self.folder.parent):
            for name in sorted(_names(folder)):
                if found := _RANK_FILE.match(name):
                    return int(found[1])
        found = _RANK_IN_NAME.search(self.folder.name) or _RANK_IN_NAME.search(self.folder.parent.name)
        return int(found[1]) if found else None


def sort_of(path: Path) -> InputKind | None:
    """None: nothing that an analysis can read."""
    head = _head(path).lstrip(_BEFORE_JSON)
    if head[:1] in (b"{", b"["):
        if path.name == PROFILE_FILE and PROFILE_FORMAT.encode() in head:
            return InputKind.PROFILE
        is_list = head[:1] == b"[" and head[1:].lstrip()[:1] == b"{" and b'"ph"' in head
        return InputKind.TRACE if is_list or _TRACE.search(head) else None
    if ".csv" in path.suffixes:
        file = CsvFile(path)
        return next((sort for is_such, sort in _TABLES if is_such(file)), None)
    if _RULE.search(head) and b"Name" in head:
        return InputKind.OPERATORS
    return InputKind.LOG if _LOG_NAME.search(path.name) else None


def sets_below(folder: Path) -> list[FileSet]:
    """The sets of files in a folder and the folders in it, without a profiler's raw data where its results are there."""
    found = [files for each in _folders(folder, 0) if (files := _set_in(each)).files]
    results = {files.folder for files in found if not _raw_parent(files.folder)}
    return [
        files
        for files in found
        if (above := _raw_parent(files.folder)) is None
        or not any(each.is_relative_to(above) for each in results)
    ]


def profile_facts(path: Path) -> dict[str, Any]:
    """run.json of `ferry profile`."""
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}; profile again") from None
    if not isinstance(read, dict) or read.get("format") != PROFILE_FORMAT:
        raise InputError(f"{str(path)!r} is not written by `ferry profile`")
    if read.get("version") != 1:
        raise InputError(f"{str(path)!r} is of version {read.get('version')!r}: update torchferry to read it")
    return read


def _set_in(folder: Path) -> FileSet:
    files = FileSet(folder)
    for name in sorted(_names(folder)):
        path = folder / name
        if path.suffix in (".json", ".csv", ".gz", ".txt") and path.is_file():
            sort = sort_of(path)
            if sort not in (None, InputKind.LOG):
                files.add(sort, path)
    return files


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    yield folder
    if depth == _DEEPEST:
        return
    for name in sorted(_names(folder)):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            yield from _folders(path, depth + 1)


def _raw_parent(folder: Path) -> Path | None:
    """The folder that the raw data of a profiler lie in, of a folder in it."""
    return next((each.parent for each in (folder, *folder.parents) if _RAW.match(each.name)), None)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            return Unpacking(file).read(_HEAD) if packed else file.read(_HEAD)
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
