"""The page of a run that goes on: written anew every few seconds, by a thread that leaves the processor to others."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import FerryError
from torchferry.report.formats import Options, write_file

SECONDS = 3.0  # between two pages, at least
_SHARE = 10  # the work may take this part of a processor
_POLITE = 10  # as `nice` counts


@dataclass(frozen=True)
class LivePage:
    """A page, and the files that it is made of: those of this run first."""

    page: Path
    files: Sequence[Path]
    options: Options
    skipped: Callable[[], bool] = lambda: False  # whether there is nothing of this run yet

    def write(self, *, is_last: bool = False) -> bool:
        """Write it, of what is there by now; False if there is nothing yet."""
        from torchferry.accuracy.curves import html, trends

        if self.skipped():
            return False
        made = html.page(trends.trends_of(self.files), self.options, 0.0 if is_last else SECONDS)
        write_file(self.page, made.encode("utf-8", "replace"))
        return True


class Follower:
    """A context in which the page follows the run; at its end it is written once more."""

    def __init__(self, live: LivePage) -> None:
        self._live = live
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Follower:
        # signals are for the thread that waits for the program
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(
                os.PRIO_PROCESS, threading.get_native_id(), _POLITE
            )  # of this thread alone, on Linux
        pause = SECONDS
        while not self._over.wait(pause):
            began = time.thread_time()  # on a busy machine, the work is long under way without doing anything
            with contextlib.suppress(
                FerryError, OSError
            ):  # no whole step yet, or no room: the last page says so
                self._live.write()
            pause = max(SECONDS, _SHARE * (time.thread_time() - began))
