"""What this user's runs are writing right now, recorded outside of every tree, so that the leftovers of a killed run are
known for what they are. A name proves nothing: anybody can put a file of any name into a source tree.

Each entry is a file in a folder that only this user can write to; its process holds a lock on it for as long as it
lives. Lines of JSON are appended to it: what was made, which file that is to the system, what comes back if the run dies.
Where no entry can be made, nothing is recorded, and leftovers stay where they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.files.user_folder import cache_folder, is_private, lasting_temporary_folder

if sys.platform != "win32":
    import fcntl

Identity = tuple[int, int, int]  # device and number of a file, and its sort: numbers are given again
_FOLDER = "made"
_ENTRY = re.compile(r"([0-9a-f]{20})-[0-9a-f]{16}")
_MOST_READ = 1 << 16
_FORGOTTEN_SECONDS = 30 * 24 * 3600


def identity(status: os.stat_result) -> Identity:
    """What a file is to the system, whatever its name."""
    return status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode)


@dataclass(frozen=True)
class ReplacedFolder:
    """A folder that makes way for a new one, and comes back if that does not come about."""

    name: str
    identity: Identity


@dataclass
class MadePath:
    """A file or folder that a run has made, as it was recorded."""

    name: str
    identity: Identity | None = None
    replaced: ReplacedFolder | None = None


@dataclass
class JournalEntry:
    """The record of one thing that this process is making."""

    path: Path | None = None
    descriptor: int = -1

    def made(self, status: os.stat_result) -> None:
        """Note that the file or folder exists now."""
        self._add({"identity": identity(status)})

    def replaces(self, name: str, status: os.stat_result) -> None:
        """A folder beside it makes way."""
        self._add({"replaced": [name, *identity(status)]})

    def close(self, *, is_gone: bool) -> None:
        """Forget it, or leave it to the next run."""
        if self.path is None:
            return
        if is_gone:
            with contextlib.suppress(OSError):
                self.path.unlink()
        os.close(self.descriptor)
        self.path = None

    def _add(self, facts: dict[str, Any]) -> None:
        if self.path is not None:
            with contextlib.suppress(OSError):  # a full disk: the leftover will stay
                os.write(self.descriptor, json.dumps(facts).encode("ascii") + b"\n")


def begin(parent: Path, name: str) -> JournalEntry:
    """Record that something of this name is about to be made in a folder (a real path)."""
    folder = _folder(make=True)
    if folder is None:
        return JournalEntry()
    while True:
        path = folder / f"{_key(parent)}-{secrets.token_hex(8)}"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            return JournalEntry()
        if not _lock(descriptor, wait=True):  # a file system without locks: nobody could tell that we live
            JournalEntry(path, descriptor).close(is_gone=True)
            return JournalEntry()
        if os.fstat(descriptor).st_nlink:  # else another run took it for abandoned before it was locked
            entry = JournalEntry(path, descriptor)
            entry._add({"name": name})
            return entry
        os.close(descriptor)


def abandoned(parent: Path) -> Iterator[tuple[MadePath, JournalEntry]]:
    """What killed runs were making in a folder (a real path); whoever asks closes the entries."""
    folder = _folder()
    key = _key(parent)
    for name in _names(folder):
        assert folder is not None
        is_of_parent = name.startswith(key)
        if not is_of_parent and not _is_forgotten(folder / name):
            continue
        entry = _taken(folder / name)
        if entry is None:
            continue
        made = _read(entry) if is_of_parent else None
        if made is None:
            entry.close(is_gone=True)
        else:
            yield made, entry


def names_in(parent: Path) -> frozenset[str]:
    """The names of all that runs are making in a folder, or were when they were killed."""
    folder, key = _folder(), _key(Path(os.path.realpath(parent)))
    found = set()
    for name in _names(folder):
        if folder is not None and name.startswith(key):
            with contextlib.suppress(OSError):
                descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                made = _read(JournalEntry(folder / name, descriptor))
                os.close(descriptor)
                found |= {made.name} if made else set()
    return frozenset(found)


def _folder(make: bool = False) -> Path | None:
    """The folder of the entries, if there is one that only this user can write to."""
    if sys.platform == "win32":
        return None
    with contextlib.suppress(OSError, RuntimeError):  # no home
        wanted = cache_folder() / _FOLDER
        if make:
            wanted.parent.mkdir(parents=True, exist_ok=True)
            wanted.mkdir(mode=0o700, exist_ok=True)
        if is_private(wanted) and os.access(wanted, os.W_OK | os.X_OK):
            return wanted
    with contextlib.suppress(OSError):
        lasting = lasting_temporary_folder(make)
        if lasting is not None:
            instead = lasting / _FOLDER
            if make:
                instead.mkdir(mode=0o700, exist_ok=True)
            return instead if is_private(instead) else None
    return None


def _names(folder: Path | None) -> list[str]:
    if folder is None:
        return []
    try:
        return sorted(name for name in os.listdir(folder) if _ENTRY.fullmatch(name))
    except OSError:
        return []


def _key(parent: Path) -> str:
    return hashlib.sha256(os.fsencode(parent)).hexdigest()[:20]


def _is_forgotten(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > _FORGOTTEN_SECONDS
    except OSError:
        return False


def _taken(path: Path) -> JournalEntry | None:
    """An entry whose process is gone, locked; None for one that lives."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    if _lock(descriptor) and os.fstat(descriptor).st_nlink:
        return JournalEntry(path, descriptor)
    os.close(descriptor)
    return None


def _lock(descriptor: int, wait: bool = False) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _read(entry: JournalEntry) -> MadePath | None:
    """What was recorded; None if the process died before it said anything, or the file is damaged."""
    facts: dict[str, Any] = {}
    for line in os.pread(entry.descriptor, _MOST_READ, 0).splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            facts.update(json.loads(line))
    name, found, replaced = facts.get("name"), facts.get("identity"), facts.get("replaced")
    if not isinstance(name, str) or not name or os.path.basename(name) != name:
        return None
    made = MadePath(name)
    with contextlib.suppress(TypeError, ValueError, IndexError):
        made.identity = (int(found[0]), int(found[1]), int(found[2])) if found else None
        if replaced and os.path.basename(replaced[0]) == replaced[0]:
            made.replaced = ReplacedFolder(
                replaced[0], (int(replaced[1]), int(replaced[2]), int(replaced[3]))
            )
    return made
