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
    rename: tuple[tuple[str, str], ...] = ()  # what names begin with, what they shall begin with
    dtype: str = ""
    plain: bool = False  # objects become dictionaries


@dataclass(frozen=True)
class Repaired:
    """What was done."""

    output: Path
    size: int
    tensors: int
    renamed: tuple[tuple[str, str, int], ...]  # old beginning, new one, names that had it
    moved: tuple[tuple[str, str, int], ...]  # from, to, storages
    left_out: tuple[str, ...]  # parts of the file that were not taken
    ran_code: bool
    cast: Cast | None = None
    made_plain: tuple[tuple[str, str], ...] = ()  # name, class
    written_twice: int = 0  # weights that share their numbers, in a format that can't say so
    lost_metadata: bool = False
    is_state_dict: bool = False  # nothing but weights by their names


@dataclass(frozen=True)
class Cast:
    """Weights that have another dtype now."""

    dtype: str
    tensors: int
    infinite: int  # numbers that were finite and are too large for it
