"""The machine as checks see it: files below a root, the environment, limits. Tests make one of their own."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

_PATIENCE = 30  # seconds


class Space(NamedTuple):
    """Bytes of a file system."""

    total: int
    free: int


class ProcessLimit(NamedTuple):
    """A limit of this process; None: unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True)
class Machine:
    """Everything that checks ask; what can't be known is None."""

    root: Path
    architecture: str
    environment: Mapping[str, str]
    affinity: frozenset[int] | None  # processors that this process may use
    nproc: int = 1  # processes that will train on this machine
    version: Callable[[str], str | None] = lambda name: None  # of an installed package
    has_turbo_jpeg: Callable[[], bool | None] = lambda: None  # whether Pillow decodes with libjpeg-turbo
    space: Callable[[Path], Space | None] = lambda path: None
    limits: Mapping[str, ProcessLimit] = field(default_factory=dict)  # nofile, memlock
    writable: Callable[[Path], bool] = lambda path: True

    def read(self, path: str) -> str | None:
        """A file below the root; None if it is not there or not for us."""
        try:
            return (self.root / path).read_text("utf-8", "replace").strip()
        except (OSError, ValueError):
            return None

    def paths(self, pattern: str) -> list[Path]:
        """Files and folders below the root, in order."""
        with contextlib.suppress(OSError, ValueError):
            return sorted(self.root.glob(pattern))
        return []

    def files(self, patterns: Sequence[str]) -> list[Path]:
        """All files that match; ~ is the user's home, which glob must take as it is written."""
        from glob import escape

        home = escape(self.environment.get("HOME", "/").rstrip("/"))
        wanted = (f"{home}{name[1:]}" if name.startswith("~/") else name for name in patterns)
        return [path for name in wanted for path in self.paths(name.lstrip("/"))]

    @cached_property
    def quota(self) -> float | None:
        """How many processors the container may use at a time; None: no limit is set."""
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        version_1 = _quota([self.read(f"sys/fs/cgroup/cpu/{name}") or "" for name in names])
        # In version 2: of the control group of this process and those above it.
        lines = (self.read("proc/self/cgroup") or "").splitlines()
        group = Path(next((line[3:] for line in lines if line.startswith("0::")), "/").lstrip("/"))
        texts = [self.read(f"sys/fs/cgroup/{folder}/cpu.max") or "" for folder in (group, *group.parents)]
        return min(filter(None, (*(_quota(text.split()) for text in texts), version_1)), default=None)

    @property
    def usable(self) -> float | None:
        """Processors that this process can really use."""
        counts = [count for count in (len(self.affinity or ()), self.quota) if count]
        return min(counts, default=None)


def _quota(words: list[str]) -> float | None:
    if len(words) != 2 or not all(word.isascii() and word.isdecimal() for word in words):
        return None
    quota, period = map(int, words)
    return quota / period if quota and period else None


def this_machine(nproc: int = 1) -> Machine:
    """The one that we run on."""
    import platform

    count = os.cpu_count()
    affinity = None if count is None else frozenset(range(count))
    if hasattr(os, "sched_getaffinity"):
        affinity = frozenset(os.sched_getaffinity(0))
    return Machine(
        root=Path("/"),
        architecture=platform.machine().lower(),
        environment=os.environ,
        affinity=affinity,
        nproc=nproc,
        version=_version,
        has_turbo_jpeg=_has_turbo_jpeg,
        space=_space,
        limits=_limits(),
        writable=lambda path: os.access(path, os.W_OK),
    )


def _version(name: str) -> str | None:
    from importlib import metadata

    # All but the first: what is there is broken.
    with contextlib.suppress(metadata.PackageNotFoundError, KeyError, OSError, ValueError):
        return metadata.version(name) or None
    return None


_ASK_PILLOW = "from PIL import features; print(features.check_feature('libjpeg_turbo'))"


def _has_turbo_jpeg() -> bool | None:
    """In a process of its own: libraries that do not fit each other crash when they are loaded."""
    import subprocess

    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK_PILLOW],
            capture_output=True,
            cwd=os.sep,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # Nothing: no Pillow, one that can't be loaded, or one that could not tell yet.
    answer = asked.stdout.strip()
    return {b"True": True, b"False": False}.get(answer) if asked.returncode == 0 else None


def _space(path: Path) -> Space | None:
    with contextlib.suppress(OSError, AttributeError):
        found = os.statvfs(path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)
    return None


def _limits() -> dict[str, ProcessLimit]:
    try:
        import resource
    except ImportError:  # not on Windows
        return {}
    kinds = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK}

    def known(value: int) -> int | None:
        return None if value == resource.RLIM_INFINITY else value

    return {name: ProcessLimit(*map(known, resource.getrlimit(kind))) for name, kind in kinds.items()}
