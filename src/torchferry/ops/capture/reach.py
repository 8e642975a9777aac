"""Where a capture reaches besides the thread that it began in, and what it has to keep out of."""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch

from torchferry.ops.capture.mode import CapturingMode


def reach_threads(mode: CapturingMode) -> None:
    """Modes are a thread's own: put this one on in every thread that the program starts."""
    original = threading.Thread.start

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        run = self.run

        def watched() -> None:
            mode.__enter__()  # type: ignore[no-untyped-call]
            try:
                run()
            finally:
                mode.take_off()  # unless the last step has done so

        if mode.is_at_work:
            self.run = watched  # type: ignore[method-assign]
        original(self)

    threading.Thread.start = start  # type: ignore[method-assign]


def keep_out_of_tracing(mode: CapturingMode) -> None:
    """torch.jit.trace records wrong graphs while any mode is on. What it has made is seen when it runs."""
    for name in ("trace", "trace_module"):
        setattr(torch.jit, name, _out_of_sight(mode, getattr(torch.jit, name)))


def _out_of_sight(mode: CapturingMode, function: Any) -> Any:
    @functools.wraps(function)
    def unseen(*args: Any, **kwargs: Any) -> Any:
        with mode.out_of_sight():
            return function(*args, **kwargs)

    return unseen
