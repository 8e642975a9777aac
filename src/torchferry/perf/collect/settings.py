"""What a process is to profile, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VARIABLE = "TORCHFERRY_PROFILE"


@dataclass(frozen=True)
class ProfileSettings:
    """Which steps, what of them, and where to put it."""

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

    def encode(self) -> str:
        """The value of the environment variable."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def steps(self) -> int:
        """How many are profiled."""
        return self.last_step - self.first_step + 1

    @property
    def first_warm(self) -> int:
        """The step in which the profiler warms up, if there are so many before the first one."""
        return max(1, self.first_step - self.warmup)


def profile_settings_in(environment: Mapping[str, str]) -> ProfileSettings | None:
    """The settings of a process; None when nothing is to be profiled."""
    value = environment.get(VARIABLE)
    if not value:
        return None
    given = json.loads(value)
    return ProfileSettings(**{**given, "vendor_paths": tuple(given["vendor_paths"])})
