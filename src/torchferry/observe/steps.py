"""Which steps of optimizers count."""

from __future__ import annotations

import functools
import sys
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


@functools.lru_cache(maxsize=1)
def _step_wrapper() -> CodeType:
    """The code of the function that PyTorch puts around each optimizer's step, and that calls the hooks."""

    def nothing(self: Any) -> None: ...

    wrapped: Any = torch.optim.Optimizer.profile_hook_step(nothing)
    code: CodeType = wrapped.__code__
    return code
