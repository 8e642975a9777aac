"""The git repository of a folder and the commit that is checked out there, read from its files: git is not started."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REFERENCE = re.compile(r"refs/[^\0\n\r]+")
_MOST_READ = 1 << 24
_LINKS = 5  # from one reference to the next


class GitFolders(NamedTuple):
    """Where the files of a repository are."""

    top: Path  # the folder that holds .git
    own: Path  # .git itself, or what it names if it is a file
    common: Path  # what further work trees share; else the same


def git_folders(folder: Path) -> GitFolders | None:
    """The repository that a folder belongs to."""
    place = Path(os.path.abspath(folder))
    for top in (place, *place.parents):
        own = top / ".git"
        named = small_file(own).removeprefix(b"gitdir:").strip()
        if named and (top / os.fsdecode(named)).is_dir():
            own = top / os.fsdecode(named)
        if own.is_dir():
            shared = os.fsdecode(small_file(own / "commondir").strip())
            return GitFolders(top, own, own / shared if shared else own)
    return None


def head_commit(found: GitFolders, name: str = "HEAD", links: int = _LINKS) -> str:
    """The commit that a reference names, "" if there is none yet."""
    said = (
        (small_file(found.own / name) or small_file(found.common / name)).decode("utf-8", "replace").strip()
    )
    if _COMMIT.fullmatch(said):
        return said
    further = said.removeprefix("ref:").strip()
    if said.startswith("ref:") and _REFERENCE.fullmatch(further) and ".." not in further and links:
        return head_commit(found, further, links - 1)
    for line in small_file(found.common / "packed-refs").decode("utf-8", "replace").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name and _COMMIT.fullmatch(commit):
            return commit
    return ""


def small_file(path: Path) -> bytes:
    """A small plain file; nothing of what can't be read, or is no file."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_READ:
            return b""
        return path.read_bytes()
    except OSError:
        return b""
