"""Where a training begins."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class Entrance:
    """Where a training begins: the first call of a module that has parameters, in any thread.

    A hook would come too late: those that are added while a module is being called are not called for it.
    """

    def __init__(self, enter: Callable[[], None]) -> None:
        self._enter = enter
        self._original: Callable[..., Any] | None = None

    def open(self) -> None:
        """Wait for it."""
        original = self._original = torch.nn.Module.__call__

        @functools.wraps(original)
        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if next(module.parameters(), None) is not None and self.close():
                self._enter()
            return original(module, *args, **kwargs)

        torch.nn.Module.__call__ = call  # type: ignore[method-assign]

    def close(self) -> bool:
        """Wait no longer; whether it was waited for."""
        original, self._original = self._original, None
        if original is not None:
            torch.nn.Module.__call__ = original  # type: ignore[method-assign]
        return original is not None
