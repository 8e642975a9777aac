"""What a process is to record, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from torchferry.accuracy.model import Kept

VARIABLE = "TORCHFERRY_RECORD"
# Inside code that torch.compile has made no operator shows; what it would compile runs as it is written instead.
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}


class What(str, Enum):
    """What is done with the operators of a program."""

    RECORD = "record"
    OVERFLOW = "overflow"
    WATCH = "watch"


@dataclass(frozen=True)
class RecordSettings:
    """What to record, of which steps, and where to put it."""

    what: What
    output: str  # the file; an absolute path. Where there are several processes, each adds its rank
    folder: str = ""  # where processes tell the launcher what they wrote; "": there is no launcher
    program: str = ""  # how the user calls it
    again: str = ""  # with which options, besides the vendor's: see Header.options
    kept: Kept = Kept.TENSORS
    first_step: int = 1
    steps: int | None = 1  # so many, from the first one on; None: to the program's own end
    whole: bool = False  # from `import torch` on, not from the first module that is called
    keep_going: bool = False  # the program goes on after the last of the steps
    modules: tuple[str, ...] = ()  # patterns of those wanted; none: all
    operators: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    rank: int | None = None  # the only one that records
    device: str = ""  # the type of the device that computes; "": the program chooses
    vendor: str = ""
    simulated: bool = False
    replay: str = ""  # the record whose inputs the operators are given
    seed: int | None = None
    replaced: tuple[str, ...] = ()  # files of an earlier run, removed when the first new one begins
    options: dict[str, Any] = field(default_factory=dict)  # of overflow and watch alone

    def encode(self) -> str:
        """The value of the environment variable."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def last_step(self) -> int | None:
        """None: there is none."""
        return None if self.steps is None else self.first_step + self.steps - 1


_TUPLES = ("modules", "operators", "phases", "replaced")


def record_settings_in(environment: Mapping[str, str]) -> RecordSettings | None:
    """The settings of a process; None when nothing is to be recorded."""
    value = environment.get(VARIABLE)
    if not value:
        return None
    given = json.loads(value)
    tuples = {name: tuple(given.get(name, ())) for name in _TUPLES}
    kinds = {"what": What(given["what"]), "kept": Kept(given.get("kept", Kept.TENSORS))}
    return RecordSettings(**{**given, **tuples, **kinds})
