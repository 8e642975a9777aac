"""Has backward run in the thread that calls it, whichever thread that is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch


class _InCallingThread:
    """Runs the autograd engine; PyTorch's switch is one per thread, so each thread's first backward sets it."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._thread = threading.local()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self._thread, "seen"):
            self._thread.seen = True  # a program may set it otherwise afterwards
            torch.autograd.set_multithreading_enabled(False)
        return self._run(*args, **kwargs)


def install() -> None:
    """In a thread of its own, backward would pay for handing every step over, and kernels for a second set of threads.

    PyTorch would also start a thread for each device, and one that has not come up when a short program ends takes
    the process down with it.
    """
    torch.autograd.set_multithreading_enabled(False)
    engine = getattr(torch.autograd.graph, "_engine_run_backward", None)
    if engine is not None:  # a private name: without it only this thread is served
        run = _InCallingThread(engine)
        torch.autograd.graph._engine_run_backward = run
        torch.autograd._engine_run_backward = run  # type: ignore[attr-defined]
