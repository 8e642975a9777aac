"""What a process tells the launcher of its profile. Imports no torch."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torchferry.files.aside import write_whole

_SUFFIX = ".told"


@dataclass(frozen=True)
class Told:
    """What one process has done."""

    rank: int = 0
    world: int = 1
    made: int = 0  # steps of its optimizers, up to the end of the process, or of what is profiled
    first_step: int = 0  # those that are in the trace; 0: none is
    last_step: int = 0
    trace: str = ""  # a file or a folder, in the folder where this lies too
    first_mark: int = 0  # the number of the first step's mark in the trace
    seconds: float = 0.0  # of the steps in the trace
    unprofiled_step: float = (
        0.0  # seconds of a step before the profiler was on, the median; 0: too few were made
    )
    problem: str = ""  # why there is no trace
    device: str = ""
    device_name: str = ""
    torch: str = ""
    python: str = ""
    memory_limit: int = 0  # bytes; 0: not known
    memory_peak: int = 0
    memory_reserved: int = 0
    autocast: bool | None = None  # None: can't be seen
    batch: int | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)  # operators that ran on the CPU instead -> calls

    @property
    def steps(self) -> int:
        """How many steps are in the trace."""
        return self.last_step - self.first_step + 1 if self.trace else 0


def tell(folder: Path, told: Told) -> None:
    """Say it to whoever reads the folder; whole or not at all."""
    path = folder / f"{os.getpid()}{_SUFFIX}"
    write_whole(path, json.dumps(asdict(told)).encode())


def all_told(folder: Path) -> list[Told]:
    """By all processes, in the order of ranks."""
    found = [Told(**json.loads(file.read_text("utf-8"))) for file in sorted(folder.glob(f"*{_SUFFIX}"))]
    return sorted(found, key=lambda told: (told.rank, told.trace))
