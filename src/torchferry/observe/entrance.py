"""Where a training begins."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchferry.observe.patching import Patches


class Entrance:
    """Where a training begins: the first call of a module that has parameters, in any thread.

    A hook would come too late: those that are added while a module is being called are not called for it.
    """

    def __init__(self, enter: Callable[[], None]) -> None:
        self._enter = enter
        self.is_open = False  # it is waited for
        self._patches = Patches()

    def open(self) -> None:
        """Wait for it."""
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
