"""How far a compilation is, and the line on stderr that says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

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
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._last_seconds: float | None = None
        self._unfinished = False

    def __call__(self, state: BuildState) -> None:
        """Take notice of a new state."""
        if state.stage is Stage.WAITING:
            print("torchferry: waiting for another process that is building", file=self._stream, flush=True)
        elif state.stage is Stage.COMPILING:
            self._show(state)
        elif self._unfinished:
            self._end_line()

    def _show(self, state: BuildState) -> None:
        text = (
            f"torchferry: building {state.product} for torch {state.torch}, once: "
            f"{state.done}/{state.total} files, {state.seconds:.0f} s"
        )
        if self._terminal:
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()
            self._unfinished = True
        elif self._is_due(state):
            print(text, file=self._stream, flush=True)
            self._last_seconds = state.seconds

    def _is_due(self, state: BuildState) -> bool:
        if self._last_seconds is None or state.done == state.total:
            return True
        return state.seconds - self._last_seconds >= _SECONDS_BETWEEN_LINES

    def _end_line(self) -> None:
        self._stream.write("\n")
        self._stream.flush()
        self._unfinished = False


def silent(state: BuildState) -> None:
    """Show nothing."""
