"""Reading, copying and staging files with as few system calls as it takes: a project has thousands of them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_CHUNK = 1 << 20
_ASIDE = ".ferry-aside-"
_ASIDE_NAME = re.compile(re.escape(_ASIDE) + r"[a-z0-9_]{8}")
_REPLACED = "replaced"
_WAITING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def read_file(path: str) -> bytes:
    """All bytes of a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks = []
        while chunk := os.read(descriptor, _CHUNK):
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(descriptor)


def copy_file(source: str, target: str) -> None:
    """Copy bytes, permissions and times of a regular file to a name that does not exist yet."""
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        created = _create(target, status.st_mode)
        try:
            while chunk := os.read(descriptor, _CHUNK):
                _write_all(created, chunk)
        finally:
            os.close(created)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(descriptor)


def write_like(source: str, target: str, data: bytes) -> None:
    """Write a new file with the permissions of another."""
    created = _create(target, os.stat(source).st_mode)
    try:
        _write_all(created, data)
    finally:
        os.close(created)


def write_new(target: str, data: bytes, executable: bool = False) -> None:
    """Write a new file with the permissions that new files get here."""
    created = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o777 if executable else 0o666
    )
    try:
        _write_all(created, data)
    finally:
        os.close(created)


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


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C and the like wait until the block is done."""
    if sys.platform == "win32":
        yield
        return
    waiting = {getattr(signal, name) for name in _WAITING_SIGNALS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_aside(name: str) -> bool:
    """Whether a name is that of a folder that some run writes aside."""
    return bool(_ASIDE_NAME.fullmatch(name))


@contextmanager
def folder_aside(parent: Path) -> Iterator[Path]:
    """A folder to write to before things are put in place; gone afterwards.

    It is locked while its process lives, so that a later run can tell what a killed one has left.
    """
    path, lock = _locked_folder(parent)
    try:
        yield path
    finally:
        with uninterrupted():
            shutil.rmtree(path, ignore_errors=True)
        _unlock(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=parent))
        lock = _lock(path, wait=True)
        if path.exists():  # else another run took it for a leftover before it was locked
            return path, lock
        _unlock(lock)


def _lock(folder: Path, wait: bool = False) -> int:
    """A descriptor that holds the lock of a folder, or -1."""
    if sys.platform == "win32":
        return -1
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by a run that lives, or a file system without locks
        os.close(descriptor)
        return -1
    return descriptor


def _unlock(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def replace_folder(new: Path, place: Path, aside: Path) -> None:
    """Put a finished folder in place of whatever folder is there."""
    kept = aside / _REPLACED / place.name
    with uninterrupted():
        if not place.exists():
            os.rename(new, place)
            return
        kept.parent.mkdir()
        os.rename(place, kept)
        try:
            os.rename(new, place)
        except OSError:
            os.rename(kept, place)
            raise


def fill_folder(new: Path, place: Path) -> None:
    """Move what a finished folder holds into an empty one; it holds all of it or nothing afterwards."""
    moved: list[str] = []
    with uninterrupted():
        try:
            for name in sorted(os.listdir(new)):
                os.rename(new / name, place / name)
                moved.append(name)
            new.rmdir()
        except OSError:
            for name in moved:
                os.rename(place / name, new / name)
            raise


def remove_leftovers(parent: Path) -> None:
    """Clear what killed runs have left in a folder; an output that was being replaced comes back."""
    try:
        names = [entry.name for entry in os.scandir(parent) if is_aside(entry.name)]
    except OSError:
        return
    for name in names:
        path = parent / name
        lock = _lock(path)
        if lock < 0:
            continue
        kept = path / _REPLACED
        for old in kept.iterdir() if kept.is_dir() else ():
            if not os.path.lexists(parent / old.name):
                os.rename(old, parent / old.name)
        shutil.rmtree(path, ignore_errors=True)
        _unlock(lock)
