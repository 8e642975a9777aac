"""What a run has written into a folder: a list of digests that lies there in a JSON file of ours, so that a later run can
tell whether anything was added or changed since."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LIST = b',\n  "written": {\n'
_END = b"\n  }\n}\n"
_CHUNK = 1 << 20
_MOST_READ = 1 << 30  # of a list: a forged one must not fill the memory
_CACHES = "__pycache__"  # Python's own, made by running what was written


def hashing(data: bytes = b"") -> hashlib.blake2b:
    """The digest of bytes that pass by; its `hexdigest` is what lists hold."""
    return hashlib.blake2b(data, digest_size=16)


def of_link(target: str) -> str:
    """What stands for a link in a list."""
    return f"-> {target}"  # no digest begins like this


def digests(folder: Path) -> dict[str, str]:
    """Of everything below a folder, by path with forward slashes; links by what they say, never followed."""
    return {path: _of_entry(entry) for path, entry in _entries(str(folder))}


def with_list(data: bytes, name: str, written: dict[str, str]) -> bytes:
    """The bytes of a JSON object with the list of what was written beside it, and its own digest, as the last key."""
    head = data.rstrip().removesuffix(b"}").rstrip()
    listed = {**written, name: hashing(head).hexdigest()}
    lines = [f"    {json.dumps(path)}: {json.dumps(listed[path])}" for path in sorted(listed)]
    return head + _LIST + ",\n".join(lines).encode("ascii") + _END


def foreign(folder: Path, name: str) -> list[str]:
    """What lies in a folder that a run has written, by the list in a file of this name there, and is not of that run, or
    was changed since; the file itself where it has no list."""
    listed = _listed(folder, name)
    if listed is None:
        return [name]
    return [
        path
        for path, entry in _entries(str(folder))
        if path != name and (path not in listed or listed[path] != _of_entry(entry))
    ]


def _listed(folder: Path, name: str) -> dict[str, Any] | None:
    """The list, if there is one and the file that holds it is as it was written."""
    try:
        if (folder / name).stat().st_size > _MOST_READ:
            return None
        head, found, rest = (folder / name).read_bytes().rpartition(_LIST)
        listed = json.loads(b"{" + rest.removesuffix(_END) + b"}")
    except (OSError, ValueError, RecursionError):
        return None
    return listed if found and listed.get(name) == hashing(head).hexdigest() else None


def _entries(root: str, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    folders = [below]
    while folders:
        below = folders.pop()
        with os.scandir(os.path.join(root, below) if below else root) as listing:
            for entry in listing:
                path = f"{below}/{entry.name}" if below else entry.name
                if not entry.is_dir(follow_symlinks=False):
                    yield path, entry
                elif entry.name != _CACHES:
                    folders.append(path)


def _of_entry(entry: os.DirEntry[str]) -> str:
    """Empty for what is no file and no link, or can't be read: nobody's digest."""
    try:
        if entry.is_symlink():
            return of_link(os.readlink(entry.path))
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            return ""
        state = hashing()
        with open(entry.path, "rb") as file:
            while chunk := file.read(_CHUNK):
                state.update(chunk)
        return state.hexdigest()
    except OSError:
        return ""
