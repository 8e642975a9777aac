"""How far a compilation is, and the line on stderr that says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

from torchferry.report.progress import StatusLine

_SECONDS_BETWEEN_LINES = 30  # in a log file, where a line can't be written over


class Stage(Enum):
    """What is going on."""

    WAITING = "another process compiles"
    COMPILING = "compiling"
    ENDED = "done, failed or interrupted"


@dataclass(frozen=True)
class BuildState:
    """How far a build is."""

    stage: Stage
    torch: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    product: str = "the simulated device"


Progress = Callable[[BuildState], None]


class ProgressLine:
    """Shows the state of one build: a line that changes on a terminal, a few lines elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._line = StatusLine(stream, _SECONDS_BETWEEN_LINES)

    def __call__(self, state: BuildState) -> None:
        """Take notice of a new state."""
        if state.stage is Stage.WAITING:
            StatusLine(self._stream, 0).show("torchferry: waiting for another process that is building")
        elif state.stage is Stage.COMPILING:
            text = (
                f"torchferry: building {state.product} for torch {state.torch}, once: "
                f"{state.done}/{state.total} files, {state.seconds:.0f} s"
            )
            self._line.show(text, state.done == state.total, state.seconds)
        else:
            self._line.clear()


def silent(state: BuildState) -> None:
    """Show nothing."""
