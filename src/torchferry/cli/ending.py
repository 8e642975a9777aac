"""How a run ends early without harm: signals that ask it to, readers that have seen enough."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SECONDS_BEFORE_ASKED_AGAIN = 2.0  # before, it is cleaning up, and does so in peace
_SECONDS_TO_CLEAN_UP = 10.0  # who asks again after them does not want to wait any longer
_SECONDS_OUT_OF_DESTRUCTOR = 0.05
_SECONDS_TO_ANSWER = 1.5  # a computation that does not come to an end by then is left


class Stopped(KeyboardInterrupt):
    """SIGTERM asked the process to end; cleaned up after like Ctrl-C."""

    exit_code = 128 + signal.SIGTERM  # as shells count


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM ends the work like Ctrl-C does: at once, also in worker processes, with nothing half-made left behind."""
    asking = _Asking()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    lost, sys.unraisablehook = sys.unraisablehook, asking.lost
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as in a shell script's background job
            signal.signal(number, asking.stop)
    try:
        yield
    finally:
        sys.unraisablehook = lost
        for number, handler in before.items():
            signal.signal(number, handler)


class _Asking:
    def __init__(self) -> None:
        self._process = os.getpid()
        self._first = math.inf
        self._last = -math.inf

    def stop(self, number: int, _frame: object) -> None:
        """End the work; once, as long as it takes to clean up."""
        if os.getpid() != self._process:  # a worker process: it holds nothing that must be cleaned up
            os._exit(128 + number)
        if (
            "multiprocessing" in sys.modules
        ):  # else the pool waits for the files that its workers are busy with
            import multiprocessing

            for worker in multiprocessing.active_children():
                worker.kill()
        now = time.monotonic()
        if now - self._last < _SECONDS_BEFORE_ASKED_AGAIN:
            return
        self._first, self._last = min(self._first, now), now
        if now - self._first > _SECONDS_TO_CLEAN_UP:
            os._exit(128 + number)
        raise KeyboardInterrupt if number == signal.SIGINT else Stopped

    def lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """An exception in a destructor goes nowhere; one that is to end the process is raised again after it."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        self._last = -math.inf
        number = signal.SIGTERM if isinstance(unraisable.exc_value, Stopped) else signal.SIGINT
        signal.signal(signal.SIGALRM, lambda _number, frame: self.stop(number, frame))
        signal.setitimer(signal.ITIMER_REAL, _SECONDS_OUT_OF_DESTRUCTOR)


@contextmanager
def computing() -> Iterator[None]:
    """Around work whose single operators may take long: Python answers a signal only between two of them. If it does
    not in time, the process ends as it is: what is written here is written aside, and put in its place when whole."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(reading,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)


def _end_in_time(reading: int) -> None:
    """Until nobody can write any more; or some seconds after a signal, of which Python writes the number."""
    while received := os.read(reading, 1):
        if received[0] in _SIGNALS and signal.getsignal(received[0]) != signal.SIG_IGN:
            time.sleep(_SECONDS_TO_ANSWER)
            os.write(2, b"ferry: interrupted; nothing was written\n")
            os._exit(128 + received[0])
    os.close(reading)
