"""What is to be done to a checkpoint, and what was; no torch is needed to speak of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Repair:
    """What is to be done."""

    only: str = ""
    strip: tuple[str, ...] = ()
    devices: tuple[tuple[str, str], ...] = ()  # from, to; "*" is any
    allow_pickle: bool = False
    force: bool = False


@dataclass(frozen=True)
class Repaired:
    """What was done."""

    output: Path
    size: int
    tensors: int
    stripped: tuple[tuple[str, int], ...]  # prefix, names that had it
    moved: tuple[tuple[str, str, int], ...]  # from, to, storages
    left_out: tuple[str, ...]  # parts of the file that were not taken
    ran_code: bool
