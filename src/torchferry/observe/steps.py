"""Which steps of optimizers count."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch


def is_outermost_step() -> bool:
    """An optimizer may step others, or its own base class, inside its step."""
    frame, steps = sys._getframe(2), 0
    while frame is not None and steps < 2:
        steps += frame.f_code == _step_wrapper()
        frame = frame.f_back  # type: ignore[assignment]
    return steps == 1


def remember_optimizers(known: weakref.WeakSet[torch.optim.Optimizer]) -> None:
    """Add every optimizer that is made from now on: one that has not stepped yet is waited for as well."""
    original: Callable[..., None] = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        known.add(self)

    torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]


@functools.lru_cache(maxsize=1)
def _step_wrapper() -> CodeType:
    """The code of the function that PyTorch puts around each optimizer's step, and that calls the hooks."""

    def nothing(self: Any) -> None: ...

    wrapped: Any = torch.optim.Optimizer.profile_hook_step(nothing)
    code: CodeType = wrapped.__code__
    return code
