"""Writing aside and putting in place: what a run writes appears whole or not at all, and a killed run's leftovers go.

Temporary names are random, made anew (never opened through a link, never one that exists), and recorded in the journal:
only what is recorded there, and still is the same file, is ever removed or put back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from torchferry.files import journal

PREFIX = ".ferry-"
_REPLACED = "replaced"
_WAITING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


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


def is_being_made(path: str) -> bool:
    """Whether a file or folder is one that a run writes aside, or has left when it was killed."""
    parent, name = os.path.split(path)
    return name.startswith(PREFIX) and name in journal.names_in(Path(parent))


@dataclass
class FileAside:
    """A new file that is not in its place yet."""

    path: Path
    stream: IO[bytes]
    is_detached: bool = False

    def detach(self) -> int:
        """Its descriptor, which stays open when the file is in place."""
        self.is_detached = True
        self.stream.flush()
        return self.stream.fileno()


@contextmanager
def file_aside(path: Path) -> Iterator[FileAside]:
    """A new file beside a place; in that place when the block has ended well, gone if it has not."""
    parent = Path(os.path.realpath(path.parent))
    remove_leftovers(parent)
    aside = parent / f"{PREFIX}{secrets.token_hex(8)}"
    entry = journal.begin(parent, aside.name)
    try:
        descriptor = os.open(aside, _NEW, 0o666)
        is_detached = False
        try:
            entry.made(os.fstat(descriptor))
            with open(descriptor, "w+b", closefd=False) as stream:
                made = FileAside(aside, stream)
                yield made
            with contextlib.suppress(OSError, AttributeError):
                earlier = path.lstat()
                if stat.S_ISREG(earlier.st_mode):  # whoever closed it to others finds it closed again
                    os.fchmod(descriptor, stat.S_IMODE(earlier.st_mode) & 0o777)
            os.replace(aside, parent / path.name)
            is_detached = made.is_detached
        finally:
            if not is_detached:
                os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        entry.close(is_gone=not os.path.lexists(aside))


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a file that appears whole or not at all; to a pipe or a device as it is."""
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as stream:
            yield stream
        return
    with file_aside(path) as made:
        yield made.stream


def write_whole(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file that appears whole or not at all; folders on the way there are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.writelines([data] if isinstance(data, bytes) else data)


@dataclass(frozen=True)
class FolderAside:
    """A folder of this run alone, beside what it makes."""

    path: Path
    entry: journal.JournalEntry

    def replace(self, new: Path, place: Path, is_ours: Callable[[Path], bool]) -> Path | None:
        """Put a finished folder from inside this one in place of whatever folder is there.

        If that holds anything that is not ours it is kept beside; answers with its new name.
        """
        is_kept = place.is_dir() and any(place.iterdir()) and not is_ours(place)
        with uninterrupted():
            if not place.exists():
                os.rename(new, place)
                return None
            old = free_name(place) if is_kept else self.path / _REPLACED / place.name
            if not is_kept:
                self.entry.replaces(place.name, place.lstat())
                old.parent.mkdir()
            os.rename(place, old)
            try:
                os.rename(new, place)
            except OSError:
                os.rename(old, place)
                raise
        return old if is_kept else None


def free_name(place: Path) -> Path:
    """A name beside a file or folder that nothing has: out.1, out.2 ..."""
    number = 1
    while os.path.lexists(place.with_name(f"{place.name}.{number}")):
        number += 1
    return place.with_name(f"{place.name}.{number}")


@contextmanager
def folder_aside(parent: Path) -> Iterator[FolderAside]:
    """A folder to write to before things are put in place; gone afterwards."""
    real = Path(os.path.realpath(parent))
    path = real / f"{PREFIX}aside-{secrets.token_hex(8)}"
    entry = journal.begin(real, path.name)
    try:
        path.mkdir(mode=0o700)
        entry.made(path.lstat())
        yield FolderAside(path, entry)
    finally:
        with uninterrupted():
            shutil.rmtree(path, ignore_errors=True)
        entry.close(is_gone=not os.path.lexists(path))


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder of this run alone where the system keeps such; one that a killed run has left there goes."""
    parent = Path(tempfile.gettempdir())
    remove_leftovers(parent)
    with folder_aside(parent) as made:
        yield str(made.path)


def put_numbered(new: Path, parent: Path) -> int:
    """Move a finished folder into another one under the next number, 0001, 0002 ..., whoever else does so at the same
    time; the number."""
    number = max((int(name) for name in os.listdir(parent) if name.isdecimal()), default=0)
    while True:
        number += 1
        try:
            os.rename(new, parent / f"{number:04}")
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
        else:
            return number


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
    """Clear what killed runs of this user have left in a folder; an output that was being replaced comes back."""
    real = Path(os.path.realpath(parent))
    for made, entry in journal.abandoned(real):
        is_gone = True
        try:
            with uninterrupted():
                _remove(real, made)
        except FileNotFoundError:
            pass
        except OSError:  # it can't be removed now; perhaps the next run can
            is_gone = False
        entry.close(is_gone=is_gone)


def _remove(parent: Path, made: journal.MadePath) -> None:
    path = parent / made.name
    status = path.lstat()
    if made.identity is None:  # killed before it could say which file it is: nothing was written yet
        if stat.S_ISDIR(status.st_mode):
            path.rmdir()
        elif stat.S_ISREG(status.st_mode) and not status.st_size:
            path.unlink()
    elif journal.identity(status) != made.identity:
        return  # something else has this name now
    elif stat.S_ISDIR(status.st_mode):
        if made.replaced is not None:
            _put_back(parent, made, made.replaced)
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _put_back(parent: Path, made: journal.MadePath, replaced: journal.ReplacedFolder) -> None:
    """Move a folder back to its place if nothing is there; every step by descriptors, none through a link."""
    with contextlib.ExitStack() as opened, contextlib.suppress(FileNotFoundError):

        def folder(name: str | Path, within: int | None = None) -> int:
            descriptor = os.open(name, _FOLDER, dir_fd=within)
            opened.callback(os.close, descriptor)
            return descriptor

        above = folder(parent)
        aside = folder(made.name, above)
        kept = folder(_REPLACED, aside)
        status = os.stat(replaced.name, dir_fd=kept, follow_symlinks=False)
        is_the_same = stat.S_ISDIR(status.st_mode) and journal.identity(status) == replaced.identity
        if not is_the_same or journal.identity(os.fstat(aside)) != made.identity:
            raise OSError(errno.EBUSY, "is not what was recorded", made.name)
        if not os.path.lexists(parent / replaced.name):
            os.rename(replaced.name, replaced.name, src_dir_fd=kept, dst_dir_fd=above)
