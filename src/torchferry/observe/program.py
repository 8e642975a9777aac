"""A user's program from inside its process: seeded, watched from where a training begins, around its loaders, ended early."""

from __future__ import annotations

import atexit
import functools
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import Any

import torch

from torchferry.observe.patching import Patches

_MOST_REFUSALS = 3


class EarlyEnd:
    """The end of this process with this exit code, asked for as often as the program goes on."""

    def __init__(self, code: int = 0) -> None:
        self._code = code
        self._times = 0

    def ask(self) -> None:
        """End the process, not with an Exception: `finally` blocks run, `except Exception` does not stop it."""
        self._times += 1
        if self._times > _MOST_REFUSALS:  # the program catches whatever comes, and goes on
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._code)
        raise SystemExit(self._code)


def before_every_end(patches: Patches, function: Callable[[], None]) -> None:
    """Call this at the end of the program, before `os._exit`, and when the process is told to end (SIGTERM, which a
    program that takes too long gets), until the patches are taken back."""
    atexit.register(function)
    patches.add(lambda: atexit.unregister(function))
    before_hard_exit(patches, function)
    _before_termination(patches, function)


def before_hard_exit(patches: Patches, function: Callable[[], None]) -> None:
    """Call this before `os._exit`, which is how forked processes of multiprocessing end."""
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


class Entrance:
    """Where a training begins: the first call of a module that has parameters, in any thread.

    A hook would come too late: those that are added while a module is being called are not called for it.
    """

    def __init__(self, enter: Callable[[], None]) -> None:
        self._enter = enter
        self.is_open = False  # it is waited for
        self._patches = Patches()

    def open(self) -> None:
        """Wait for the first call of a module."""
        original = torch.nn.Module.__call__
        self.is_open = True

        @functools.wraps(original)
        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if next(module.parameters(), None) is not None and self.close():
                self._enter()
            return original(module, *args, **kwargs)

        self._patches.replace(torch.nn.Module, "__call__", call)

    def close(self) -> bool:
        """Wait no longer; whether it was waited for."""
        was_open, self.is_open = self.is_open, False
        self._patches.take_back()
        return was_open


def around_loading(patches: Patches, context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Be in this context while a DataLoader makes or fetches a batch, until the patches are taken back."""
    from torch.utils.data import dataloader

    iterator: Any = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        with context():
            return original(self)

    patches.replace(iterator, "__next__", following)


def seed_all(seed: int) -> None:
    """Python's, PyTorch's and NumPy's; a program that sets its own afterwards has its own."""
    random.seed(seed)
    torch.manual_seed(seed)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(seed)
