"""Where a capture reaches besides the thread that it began in, and what it has to keep out of."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from torchferry.observe.modes import ObservingMode
from torchferry.observe.patching import Patches


class Sight(Protocol):
    """What sees operators, and can look away."""

    def out_of_sight(self) -> AbstractContextManager[Any]:
        """What is called in it is not seen."""


def reach_threads(
    patches: Patches, mode: ObservingMode, is_wanted: Callable[[threading.Thread], bool]
) -> None:
    """Modes are a thread's own: put this one on in threads that the program starts, if they are wanted then."""
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

        if is_wanted(self):
            self.run = watched  # type: ignore[method-assign]
        original(self)

    patches.replace(threading.Thread, "start", start)


def keep_out_of_tracing(patches: Patches, sight: Sight) -> None:
    """torch.jit.trace records wrong graphs while any mode is on. What it has made is seen when it runs."""
    for name in ("trace", "trace_module"):
        patches.replace(torch.jit, name, _out_of_sight(sight, getattr(torch.jit, name)))


def _out_of_sight(sight: Sight, function: Any) -> Any:
    @functools.wraps(function)
    def unseen(*args: Any, **kwargs: Any) -> Any:
        with sight.out_of_sight():
            return function(*args, **kwargs)

    return unseen
