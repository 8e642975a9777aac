"""What a process is to capture, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torchferry import variables
from torchferry.launch.parts import PartSettings

SUFFIX = ".capture.json"


@dataclass(frozen=True)
class CaptureSettings(PartSettings):
    """What to capture, where to put it, and when to stop."""

    variable: ClassVar[str] = variables.OPS
    starts: ClassVar[str] = "torchferry.readiness.capture.program:start"
    places_tensors: ClassVar[bool] = True
    is_uncompiled: ClassVar[bool] = True

    folder: str  # each process that imports torch and calls an operator leaves a file here
    program: str  # how the user calls it
    steps: int | None = 1  # that change weights; None: to the program's own end
    device: str = ""  # the type of the device that computes; "": the CPU, choosing as a device would
