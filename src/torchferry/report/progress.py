"""How far a long work is: a line on a terminal that changes and is gone at the end; elsewhere a line now and then, or none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from torchferry.report.safe import one_line
from torchferry.units import duration


class Show(Protocol):
    """Takes how many are done, of how many, and what comes now."""

    def __call__(self, done: int, count: int, what: str = "") -> None: ...


_SECONDS_BETWEEN_CHANGES = 0.2
_SECONDS_UNTIL_TOLD = 3.0  # before that, nobody can say how long it takes
_LEFT = "{} left"
_WIDTH = 30


class StatusLine:
    """One line that says what is going on, in `show`; outside of a terminal it is written anew after so many seconds."""

    def __init__(self, stream: TextIO | None = None, seconds_between_lines: float | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._pause = _SECONDS_BETWEEN_CHANGES if self._is_terminal else seconds_between_lines
        self._due = float("-inf")

    def show(self, text: str, is_last: bool = False, at: float | None = None) -> None:
        """May be called as often as one likes; `at` is the time, if the caller has looked at a clock already."""
        now = time.monotonic() if at is None else at
        if self._pause is None or (now < self._due and not is_last):
            return
        self._due = now + self._pause
        line = one_line(text)
        print(
            f"\r\x1b[K{line}" if self._is_terminal else line,
            end="" if self._is_terminal else "\n",
            file=self._stream,
            flush=True,
        )

    def clear(self) -> None:
        """Take the line from the terminal."""
        if self._is_terminal:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


@contextmanager
def status_line(is_quiet: bool = False, stream: TextIO | None = None) -> Iterator[StatusLine | None]:
    """A line on a terminal; None elsewhere, so that nobody counts in vain."""
    stream = sys.stderr if stream is None else stream
    if is_quiet or not stream.isatty():
        yield None
        return
    line = StatusLine(stream)
    try:
        yield line
    finally:
        line.clear()


@contextmanager
def progress_bar(
    is_quiet: bool = False,
    unit: str = "",
    size: int = 1,
    stream: TextIO | None = None,
    has_rest: bool = False,
) -> Iterator[Show | None]:
    """What shows a bar on a terminal, in units of so much, with the time that is left if that is asked for; None
    elsewhere."""
    with status_line(is_quiet, stream) as line:
        if line is None:
            yield None
            return

        start = time.monotonic()

        def left(done: int, count: int) -> str:
            taken = time.monotonic() - start
            is_known = has_rest and taken > _SECONDS_UNTIL_TOLD and 0 < done < count
            return _LEFT.format(duration(taken * (count - done) / done)) if is_known else ""

        def show(done: int, count: int, what: str = "") -> None:
            filled = min(_WIDTH * done // max(count, 1), _WIDTH)
            figures = f"{done // size:,}/{count // size:,} {unit} {left(done, count)}".rstrip()
            line.show(f"{'━' * filled:<{_WIDTH}} {figures} {what}".rstrip(), is_last=done >= count)

        yield show
