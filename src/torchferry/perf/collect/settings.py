"""What a process is to profile, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from torchferry import variables
from torchferry.launch.parts import PartSettings, hash_seed

# Kineto says at each start and stop of the profiler that it does so.
_QUIET = {"KINETO_LOG_LEVEL": "6"}


@dataclass(frozen=True)
class ProfileSettings(PartSettings):
    """Which steps, what of them, and where to put it."""

    variable: ClassVar[str] = variables.PROFILE
    starts: ClassVar[str] = "torchferry.perf.collect.program:start"

    folder: str  # where processes leave their traces, and tell the launcher of them; an absolute path
    first_step: int
    last_step: int
    warmup: int = 1  # steps before the first one in which the profiler is on, and keeps nothing
    stacks: bool = True
    shapes: bool = True
    memory: bool = True
    keep_running: bool = False  # the program goes on after the last step
    seed: int | None = None
    device: str = ""  # the type of the device that computes; "": the program chooses
    vendor: str = ""
    vendor_paths: tuple[str, ...] = ()
    simulated: bool = False

    def environment(self) -> dict[str, str]:
        """The variables that make a process play the part."""
        quiet = {name: value for name, value in _QUIET.items() if name not in os.environ}
        return {**super().environment(), **quiet, **hash_seed(self.seed)}

    @property
    def steps(self) -> int:
        """How many are profiled."""
        return self.last_step - self.first_step + 1

    @property
    def first_warm(self) -> int:
        """The step in which the profiler warms up, if there are so many before the first one."""
        return max(1, self.first_step - self.warmup)
