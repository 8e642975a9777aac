"""Which files a project has."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import InputError, not_readable
from torchferry.files.aside import is_being_made
from torchferry.files.written import hashing
from torchferry.text import Text

# Reading and copying files with as few system calls as it takes: a project has thousands of them.

_CHUNK = 1 << 20
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def open_plain(path: str) -> int:
    """A descriptor to read a plain file; opening a pipe or a device that lies in a tree could wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _AT_ONCE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


def read_file(path: str) -> bytes:
    """All bytes of a plain file."""
    descriptor = open_plain(path)
    try:
        chunks = []
        while chunk := os.read(descriptor, _CHUNK):
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(descriptor)


def copy_file(source: str, target: str) -> str:
    """Copy bytes, permissions and times of a regular file to a name that does not exist yet; the digest of the bytes."""
    state = hashing()
    descriptor = open_plain(source)
    try:
        status = os.fstat(descriptor)
        created = _create(target, status.st_mode)
        try:
            while chunk := os.read(descriptor, _CHUNK):
                _write_all(created, chunk)
                state.update(chunk)
        finally:
            os.close(created)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(descriptor)
    return state.hexdigest()


def write_like(source: str, target: str, data: bytes) -> str:
    """Write a new file with the permissions of another; the digest of the bytes."""
    created = _create(target, os.stat(source).st_mode)
    try:
        _write_all(created, data)
    finally:
        os.close(created)
    return hashing(data).hexdigest()


def write_new(target: str, data: bytes, executable: bool = False) -> str:
    """Write a new file with the permissions that new files get here; the digest of the bytes."""
    created = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o777 if executable else 0o666
    )
    try:
        _write_all(created, data)
    finally:
        os.close(created)
    return hashing(data).hexdigest()


def keep_owner(source: str, target: str) -> None:
    """Give a file the owner of another, as far as this user may: root edits a user's file, the user keeps it."""
    status = os.stat(source)
    if sys.platform != "win32" and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):
            os.chown(target, status.st_uid, status.st_gid)
            os.chmod(target, stat.S_IMODE(status.st_mode))


def _create(target: str, mode: int) -> int:
    permissions = mode & 0o777  # a copy does not run with the rights of its owner
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != permissions:
        os.fchmod(descriptor, permissions)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        written = os.write(descriptor, data)
        data = data[written:]


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
        ".ferry",
    }
)
PYTHON_SUFFIXES = (".py", ".pyw")
FINDINGS = "findings.json"  # lies in every converted copy
_HEAD = 1000  # bytes that say what wrote it
_FORMAT = b'"format": "torchferry-findings"'
_ENVIRONMENT_MARK = "pyvenv.cfg"
_MIGRATION_MARK, _MIGRATION_FORMAT = "migration.json", b'"format": "torchferry-migration"'
_MIGRATION = Text("a migration folder: it holds migration.json", "迁移文件夹：其中有 migration.json")
_ENVIRONMENT = Text("a Python environment: it holds pyvenv.cfg", "Python 环境：其中有 pyvenv.cfg")
_OUTPUT = Text(
    "the output of an earlier conversion: it holds findings.json", "之前转换的输出：其中有 findings.json"
)

LeftOut = Callable[[str, Text], None]  # the path of a folder, and why it is left out


@dataclass(frozen=True)
class ProjectEntry:
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
) -> Iterator[ProjectEntry]:
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
) -> Iterator[ProjectEntry]:
    here = os.path.join(root, folder) if folder else root
    try:
        with os.scandir(here) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield ProjectEntry(folder, is_folder=True, problem=error.strerror or str(error))
        return
    for entry in entries:
        path = os.path.join(folder, entry.name) if folder else entry.name
        if any(fnmatch.fnmatch(path, each) or fnmatch.fnmatch(entry.name, each) for each in exclude):
            continue
        if entry.name == _GIT or is_being_made(entry.path):
            continue
        if entry.is_symlink():
            yield ProjectEntry(path, is_link=True)
        elif entry.is_dir(follow_symlinks=False):
            if entry.name in _SKIPPED_FOLDERS or (skipped and os.path.realpath(entry.path) in skipped):
                continue
            # By what lies in it, a folder may be no part of the project.
            if os.path.lexists(os.path.join(entry.path, _ENVIRONMENT_MARK)):
                left_out(path, _ENVIRONMENT)
            elif is_converted_copy(entry.path):
                left_out(path, _OUTPUT)
            elif _MIGRATION_FORMAT in _head(os.path.join(entry.path, _MIGRATION_MARK)):
                left_out(path, _MIGRATION)
            else:
                yield ProjectEntry(path, is_folder=True)
        elif entry.name == FINDINGS and _FORMAT in _head(entry.path):
            continue  # what a scan or conversion has learned is no part of the project
        elif entry.is_file(follow_symlinks=False):
            is_readable = os.access(entry.path, os.R_OK)
            yield ProjectEntry(path, problem="" if is_readable else "no permission to read it")
        else:
            yield ProjectEntry(path, problem="not a regular file")


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
        raise InputError(Text(f"{path}: no such file or folder", f"{path}：没有该文件或文件夹")) from None
    except OSError as error:
        raise not_readable(path, error) from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise InputError(
            Text(
                f"{path}: neither a file nor a folder; give a Python file or a folder",
                f"{path}：既不是文件也不是文件夹；请给出 Python 文件或文件夹",
            )
        )
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise InputError(
            Text(
                f"{path}: no permission to read it; check its permissions",
                f"{path}：没有读取权限；请检查权限",
            )
        )
    return path


def is_python(name: str, head: bytes) -> bool:
    """A Python module by its suffix, or a script by its first line."""
    if name.endswith(PYTHON_SUFFIXES):
        return True
    return "." not in name and head.startswith(b"#!") and b"python" in head.split(b"\n", 1)[0]
