"""Reading and copying files with as few system calls as it takes: a project has thousands of them."""

from __future__ import annotations

import os
import stat

_CHUNK = 1 << 20


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


def _create(target: str, mode: int) -> int:
    permissions = stat.S_IMODE(mode)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != permissions:
        os.fchmod(descriptor, permissions)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        written = os.write(descriptor, data)
        data = data[written:]
