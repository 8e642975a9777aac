"""Reading and copying files with as few system calls as it takes: a project has thousands of them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys

from torchferry.files.written import Hashing, digest

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
    state = Hashing()
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
    return state.digest()


def write_like(source: str, target: str, data: bytes) -> str:
    """Write a new file with the permissions of another; the digest of the bytes."""
    created = _create(target, os.stat(source).st_mode)
    try:
        _write_all(created, data)
    finally:
        os.close(created)
    return digest(data)


def write_new(target: str, data: bytes, executable: bool = False) -> str:
    """Write a new file with the permissions that new files get here; the digest of the bytes."""
    created = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o777 if executable else 0o666
    )
    try:
        _write_all(created, data)
    finally:
        os.close(created)
    return digest(data)


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
