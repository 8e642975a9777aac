"""What to simulate, and how a process hands it on to the processes it starts: as one environment variable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from torchferry.errors import RunError

VARIABLE = "TORCHFERRY_SIM"
DEFAULT_DEVICES = 8
DEFAULT_MEMORY = 32 << 30


@dataclass(frozen=True)
class SimSettings:
    """The simulated machine."""

    vendor: str
    devices: int = DEFAULT_DEVICES
    memory: int = DEFAULT_MEMORY  # bytes of each device
    strict: bool = False
    vendor_paths: tuple[str, ...] = ()  # folders of user-made vendors
    summary_folder: str = ""  # where processes leave their part of the summary; "" nowhere

    def encode(self) -> str:
        """The value of the environment variable."""
        return json.dumps(asdict(self), separators=(",", ":"))


def settings_in(environment: Mapping[str, str]) -> SimSettings | None:
    """The settings of a process; None when nothing is to be simulated."""
    value = environment.get(VARIABLE)
    if not value:
        return None
    given = json.loads(value)
    return SimSettings(**{**given, "vendor_paths": tuple(given.get("vendor_paths", ()))})


_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?)(?:i?b)?", re.IGNORECASE)


def parse_memory(size: int | str) -> int:
    """Bytes of "32GiB", "512MB", "1.5G" (all in powers of 1024) or of a plain number."""
    match = _SIZE.fullmatch(str(size).strip())
    memory = int(float(match["number"]) * _UNITS[match["unit"].lower()]) if match else 0
    if memory <= 0:
        raise RunError(f"{size!r} is no size of memory; write it as 32GiB, 512MiB or a number of bytes")
    return memory
