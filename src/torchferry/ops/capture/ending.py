"""The ways in which a user's process may end, none of which may lose what was captured."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def before_every_end(function: Callable[[], None]) -> None:
    """Call this at the end of the program, before `os._exit`, and when the process is told to end (SIGTERM, which a
    program that takes too long gets)."""
    atexit.register(function)
    _before_hard_exit(function)
    _before_termination(function)


def _before_hard_exit(function: Callable[[], None]) -> None:
    original: Callable[[int], Any] = os._exit

    def _exit(status: int) -> Any:
        try:
            function()
        finally:
            original(status)

    os._exit = _exit


def _before_termination(function: Callable[[], None]) -> None:
    """Only where nobody else handles the signal; a program that sets a handler of its own ends in its own way."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def told(number: int, _frame: FrameType | None) -> None:
        function()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def leave() -> None:
        if signal.getsignal(signal.SIGTERM) is told:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, told)
    os.register_at_fork(after_in_child=leave)  # a child that hangs in a kernel must still be easy to end
