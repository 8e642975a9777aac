"""Which files a project has."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.convert.filesystem import open_plain
from torchferry.errors import InputError
from torchferry.files.aside import is_being_made
from torchferry.text import Text

# Not part of a project: version control, caches, environments.
_GIT = ".git"  # a file in submodules and further work trees: it names a folder that a copy does not have
_SKIPPED_FOLDERS = frozenset(
    {
        ".hg",
        ".svn",
        "__pycache__",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        "node_modules",
        ".tox",
    }
)
PYTHON_SUFFIXES = (".py", ".pyw")
FINDINGS = "findings.json"  # lies in every converted copy
_HEAD = 1000  # bytes that say what wrote it
_FORMAT = b'"format": "torchferry-findings"'
_ENVIRONMENT_MARK = "pyvenv.cfg"
_ENVIRONMENT = Text("a Python environment: it holds pyvenv.cfg", "Python 环境：其中有 pyvenv.cfg")
_OUTPUT = Text(
    "the output of an earlier conversion: it holds findings.json", "之前转换的输出：其中有 findings.json"
)

LeftOut = Callable[[str, Text], None]  # the path of a folder, and why it is left out


@dataclass(frozen=True)
class Entry:
    """One thing below the root: `path` is relative, with the separators of this machine."""

    path: str
    is_link: bool = False
    is_folder: bool = False
    problem: str = ""  # why it can't be read


def discover(
    root: Path,
    exclude: Sequence[str] = (),
    skip: Sequence[Path] = (),
    left_out: LeftOut = lambda _path, _reason: None,
) -> Iterator[Entry]:
    """Everything below a folder, in a fixed order. Links are named, not followed; `skip` holds folders to leave out.

    `left_out` is told of folders that are no part of the project by what lies in them: anybody can put it there.
    """
    patterns = tuple(os.path.normpath(pattern) for pattern in exclude)
    skipped = {os.path.realpath(path) for path in skip}
    folders = [""]
    while folders:
        folder = folders.pop()
        below: list[str] = []
        for entry in _inside(str(root), folder, patterns, skipped, left_out):
            yield entry
            if entry.is_folder and not entry.problem:
                below.append(entry.path)
        folders.extend(reversed(below))


def _inside(
    root: str, folder: str, exclude: tuple[str, ...], skipped: set[str], left_out: LeftOut
) -> Iterator[Entry]:
    """The entries of one folder."""
    here = os.path.join(root, folder) if folder else root
    try:
        with os.scandir(here) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield Entry(folder, is_folder=True, problem=error.strerror or str(error))
        return
    for entry in entries:
        path = os.path.join(folder, entry.name) if folder else entry.name
        if _is_excluded(path, entry.name, exclude):
            continue
        if entry.name == _GIT or is_being_made(entry.path):
            continue
        if entry.is_symlink():
            yield Entry(path, is_link=True)
        elif entry.is_dir(follow_symlinks=False):
            if _is_skipped_folder(entry, skipped):
                continue
            reason = _reason_to_leave_out(entry)
            if reason is None:
                yield Entry(path, is_folder=True)
            else:
                left_out(path, reason)
        elif entry.name == FINDINGS and _FORMAT in _head(entry.path):
            continue  # what a scan or conversion has learned is no part of the project
        elif entry.is_file(follow_symlinks=False):
            yield Entry(path, problem="" if os.access(entry.path, os.R_OK) else "no permission to read it")
        else:
            yield Entry(path, problem="not a regular file")


def _is_excluded(path: str, name: str, exclude: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(name, pattern) for pattern in exclude)


def _is_skipped_folder(entry: os.DirEntry[str], skipped: set[str]) -> bool:
    return entry.name in _SKIPPED_FOLDERS or (bool(skipped) and os.path.realpath(entry.path) in skipped)


def _reason_to_leave_out(entry: os.DirEntry[str]) -> Text | None:
    """Why a folder is no part of the project, by what lies in it."""
    if os.path.lexists(os.path.join(entry.path, _ENVIRONMENT_MARK)):
        return _ENVIRONMENT
    return _OUTPUT if is_converted_copy(entry.path) else None


def is_converted_copy(folder: str | Path) -> bool:
    """Whether a folder is the output of an earlier conversion, by the findings that lie in it."""
    head = _head(os.path.join(folder, FINDINGS))
    return _FORMAT in head and b'"command": "convert"' in head


def _head(path: str) -> bytes:
    """The first bytes of a plain file, none if it can't be read."""
    try:
        descriptor = open_plain(path)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _HEAD)
    finally:
        os.close(descriptor)


def check_input(path: Path) -> Path:
    """The path as it is, if there is something to read."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise InputError(f"{path}: neither a file nor a folder")
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise InputError(f"{path}: no permission to read it")
    return path


def is_python(name: str, head: bytes) -> bool:
    """A Python module by its suffix, or a script by its first line."""
    if name.endswith(PYTHON_SUFFIXES):
        return True
    return "." not in name and head.startswith(b"#!") and b"python" in head.split(b"\n", 1)[0]
