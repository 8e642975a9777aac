"""A bar on a terminal that shows how much of a long work is done, and is gone when it is over."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from torchferry.report.safe import one_line

_TICK = 0.2  # seconds between two looks
_WIDTH = 30


class Bar:
    """A context; `show` may be called as often as one likes."""

    def __init__(self, stream: TextIO, unit: str = "", size: int = 1) -> None:
        self._stream = stream
        self._unit = f" {unit}" if unit else ""
        self._size = size  # of a unit
        self._last = 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        print("\r\x1b[K", end="", file=self._stream, flush=True)

    def show(self, done: int, count: int, what: str = "") -> None:
        """So many of so many are done."""
        now = time.monotonic()
        if now - self._last < _TICK and done < count:
            return
        self._last = now
        filled = min(_WIDTH * done // max(count, 1), _WIDTH)
        bar = "━" * filled + " " * (_WIDTH - filled)
        figures = f"{done // self._size:,}/{count // self._size:,}{self._unit}"
        line = f"{bar} {figures} {one_line(what)}".rstrip()
        print(f"\r\x1b[K{line}", end="", file=self._stream, flush=True)
