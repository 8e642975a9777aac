"""How a run ends early without harm: signals that ask it to, readers that have seen enough."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """SIGTERM asked the process to end; cleaned up after like Ctrl-C."""

    exit_code = 128 + signal.SIGTERM  # as shells count


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM ends the work like Ctrl-C does: at once, also in worker processes, with nothing half-made left behind."""
    process = os.getpid()

    def stop(number: int, frame: object) -> None:
        if os.getpid() != process:  # a worker process: it holds nothing that must be cleaned up
            os._exit(Stopped.exit_code)
        _end_workers()
        raise KeyboardInterrupt if number == signal.SIGINT else Stopped

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as in a shell script's background job
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_workers() -> None:
    """Else the pool waits for the files that they are busy with."""
    if "multiprocessing" in sys.modules:
        import multiprocessing

        for worker in multiprocessing.active_children():
            worker.kill()


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print; a reader who has seen enough, as in `ferry scan . | head`, does not change the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Let nothing be flushed to a closed pipe or a full disk at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
