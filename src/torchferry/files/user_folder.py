"""Where this user's compiled libraries and records of runs are kept, and whether such a place can be trusted."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

VARIABLE = "TORCHFERRY_CACHE"

_ROOT = 0


def cache_folder() -> Path:
    """The folder of this user's caches; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    user_caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(user_caches) if user_caches else Path.home() / ".cache") / "torchferry"


def private_temporary_folder() -> Path:
    """One that the next process finds again, or a new one. What it holds is believed: nobody else may have made it."""
    return lasting_temporary_folder() or Path(tempfile.mkdtemp(prefix="torchferry-"))


def lasting_temporary_folder(make: bool = True) -> Path | None:
    """One that the next process finds again, unless somebody else has taken its name."""
    place = Path(tempfile.gettempdir(), f"torchferry-{os.getuid()}")
    if not make:
        return place if is_private(place) else None
    with contextlib.suppress(FileExistsError):  # a link to nowhere exists too
        place.mkdir(mode=0o700, exist_ok=True)
    return place if is_private(place) else None


def is_private(folder: Path) -> bool:
    """Whether a folder is this user's own, no link, and nobody else can write there."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == _user() and not status.st_mode & 0o022


def is_trusted(path: Path) -> bool:
    """Whether what lies there was put there by this user or root, so that it can be loaded into a process.

    Others may share a cache that root has filled. A user's own folder may be open to a group of the user's choice, as
    it is for a new one on many systems; one that is open to everybody is not trusted, nor is one of another user.
    """
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid in (_user(), _ROOT) and not status.st_mode & 0o002


def _user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()
