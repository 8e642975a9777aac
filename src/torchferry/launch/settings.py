"""What a process of `ferry run --steps N` is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torchferry import variables
from torchferry.launch.parts import PartSettings


@dataclass(frozen=True)
class StepLimit(PartSettings):
    """After how many steps a program is ended."""

    variable: ClassVar[str] = variables.STEPS
    starts: ClassVar[str] = "torchferry.launch.step_limit:start"

    steps: int
