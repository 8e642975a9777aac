"""The ways in which a user's process may end, none of which may lose what was captured."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from torchferry.observe.patching import Patches


def before_every_end(patches: Patches, function: Callable[[], None]) -> None:
    """Call this at the end of the program, before `os._exit`, and when the process is told to end (SIGTERM, which a
    program that takes too long gets), until the patches are taken back."""
    atexit.register(function)
    patches.add(lambda: atexit.unregister(function))
    _before_hard_exit(patches, function)
    _before_termination(patches, function)


def _before_hard_exit(patches: Patches, function: Callable[[], None]) -> None:
    original: Callable[[int], Any] = os._exit

    def _exit(status: int) -> Any:
        try:
            function()
        finally:
            original(status)

    patches.replace(os, "_exit", _exit)


def _before_termination(patches: Patches, function: Callable[[], None]) -> None:
    """Only where nobody else handles the signal; a program that sets a handler of its own ends in its own way."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def told(number: int, _frame: FrameType | None) -> None:
        function()
        leave()
        os.kill(os.getpid(), number)

    def leave() -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()  # no other may set handlers
        if in_main_thread and signal.getsignal(signal.SIGTERM) is told:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, told)
    patches.add(leave)
    os.register_at_fork(after_in_child=leave)  # a child that hangs in a kernel must still be easy to end
