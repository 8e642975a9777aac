"""What a process is to capture, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VARIABLE = "TORCHFERRY_OPS"
SUFFIX = ".capture.json"
# Inside code that torch.compile has made no operator shows; what it would compile runs as it is written instead.
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}


@dataclass(frozen=True)
class CaptureSettings:
    """What to capture, where to put it, and when to stop."""

    folder: str  # each process that imports torch and calls an operator leaves a file here
    program: str  # how the user calls it
    steps: int | None = 1  # of every optimizer; None: to the program's own end
    device: str = ""  # the type of the device that computes; "": the CPU, choosing as a device would

    def encode(self) -> str:
        """The value of the environment variable."""
        return json.dumps(asdict(self), separators=(",", ":"))


def capture_settings_in(environment: Mapping[str, str]) -> CaptureSettings | None:
    """The settings of a process; None when nothing is to be captured."""
    value = environment.get(VARIABLE)
    return CaptureSettings(**json.loads(value)) if value else None
