"""The line on a terminal that says how far a run is, read from the records as they grow. Imports no torch."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from torchferry.proof.recordings import SUFFIX
from torchferry.report.progress import StatusLine

_SECONDS_BETWEEN_LOOKS = 0.25
_CHUNK = 1 << 20


class RecordedSteps:
    """Counts the steps of the process that has taken most, reading each byte once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._lines: dict[Path, int] = {}

    def count(self) -> int:
        """How many steps there are by now; the first line of a file is no step."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                while chunk := file.read(_CHUNK):
                    self._lines[path] = self._lines.get(path, 0) + chunk.count(b"\n")
                self._read[path] = file.tell()
        return max((lines - 1 for lines in self._lines.values()), default=0)


@contextmanager
def shown(name: str, folder: Path, steps: int | None, stream: TextIO) -> Iterator[None]:
    """Show how far a run is while the block goes on; the line is gone afterwards."""
    done = threading.Event()
    line = StatusLine(stream)
    counter = RecordedSteps(folder)
    of = "" if steps is None else f" of {steps}"

    def show() -> None:
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            line.show(f"ferry prove: {name}: step {counter.count()}{of}")

    thread = _thread_without_signals(show)
    try:
        yield
    finally:
        done.set()
        thread.join()
        line.clear()


def _thread_without_signals(work: Callable[[], None]) -> threading.Thread:
    """The supervisor waits for signals in the main thread; none may be delivered to this one instead."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread
