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
    """SIGTERM ends the work like Ctrl-C does: nothing half-made stays behind."""
    process = os.getpid()

    def stop(number: int, frame: object) -> None:
        if os.getpid() != process:  # a worker process: it holds nothing that must be cleaned up
            os._exit(Stopped.exit_code)
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
