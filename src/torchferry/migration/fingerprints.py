"""What a step depends on, as one number: the same number means that it need not be done again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from torchferry import __version__
from torchferry.files.written import hashing
from torchferry.migration.request import MigrationRequest

# Of what a program reads as text; data, weights and what it writes itself are not looked at.
_SUFFIXES = (
    ".py", ".pyw", ".ipynb", ".sh", ".bash", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".json", ".cu", ".cuh", ".cpp", ".cc",
    ".h", ".txt",
)  # fmt: skip
_NAMES = ("Dockerfile", "Makefile")
_SKIPPED = frozenset({"__pycache__", "node_modules", "build", "dist"})
_LARGEST = 4 << 20  # bytes; what is larger is data
_BOTH_SIDES = ("run", "prove")  # steps that depend on the converted copy, too
Digests = Mapping[str, str]


def digests(folder: Path) -> dict[str, str]:
    """The sources of a project: path -> digest."""
    return {os.path.relpath(path, folder): _digest(path) for path in _sources(folder)}


def _sources(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        ]
        for name in files:
            path = os.path.join(place, name)
            if name.startswith(".") or not (name.endswith(_SUFFIXES) or name.startswith(_NAMES)):
                continue
            if os.path.isfile(path) and os.path.getsize(path) <= _LARGEST:
                yield path


def _digest(path: str) -> str:
    try:
        return hashing(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def made_by_program(before: Digests, after: Digests) -> list[str]:
    """Files that a run has written or changed; never Python, which only people change."""
    return [path for path, digest in after.items() if before.get(path) != digest and not path.endswith(".py")]


def fingerprint(
    request: MigrationRequest, step: str, project: Digests, copy: Digests, ignored: Iterable[str]
) -> str:
    """The number of a step: its command, this version, the sources of the project and, if it runs it, of the copy."""
    skipped = set(ignored)
    sides = [project, copy] if step in _BOTH_SIDES else [project]
    sources = [sorted((path, at) for path, at in side.items() if path not in skipped) for side in sides]
    whole = json.dumps([__version__, request.words(step), request.here, sources])
    return hashlib.sha256(whole.encode("utf-8", "backslashreplace")).hexdigest()[:24]
