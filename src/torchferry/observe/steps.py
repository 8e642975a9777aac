"""Which steps of optimizers count, and who is told of them."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch.optim import optimizer as optimizers

from torchferry.observe.patching import Patches

_StepHook = Callable[[torch.optim.Optimizer, Any, Any], None]


def is_outermost_step() -> bool:
    """An optimizer may step others, or its own base class, inside its step."""
    frame, steps = sys._getframe(2), 0
    while frame is not None and steps < 2:
        steps += frame.f_code == _step_wrapper()
        frame = frame.f_back  # type: ignore[assignment]
    return steps == 1


def remember_optimizers(patches: Patches, known: weakref.WeakSet[torch.optim.Optimizer]) -> None:
    """Add every optimizer that is made until the patches are taken back: one that has not stepped yet is waited for as
    well."""
    original: Callable[..., None] = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        known.add(self)

    patches.replace(torch.optim.Optimizer, "__init__", init)


def hook_steps(patches: Patches, before: _StepHook, after: _StepHook) -> None:
    """Call these before and after every optimizer's step, until the patches are taken back."""
    hooks = _StepHooks(before, after)
    hooks.add()
    patches.add(hooks.remove)


class _StepHooks:
    """Two hooks. None can be removed while PyTorch goes through them, as it calls one: then they stay, and do nothing."""

    def __init__(self, before: _StepHook, after: _StepHook) -> None:
        self._before, self._after = before, after
        self._handles: list[Any] = []
        self._is_on = True
        self._is_being_called = False

    def add(self) -> None:
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._called_before),
            optimizers.register_optimizer_step_post_hook(self._called_after),
        ]

    def remove(self) -> None:
        self._is_on = False
        if not self._is_being_called:
            self._remove()

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _called_before(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._call(self._before, optimizer, args, kwargs)

    def _called_after(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._call(self._after, optimizer, args, kwargs)

    def _call(self, hook: _StepHook, *arguments: Any) -> None:
        if not self._is_on:
            return
        self._is_being_called = True
        try:
            hook(*arguments)
        except BaseException:
            if not self._is_on:  # PyTorch goes on to no other hook
                self._remove()
            raise
        finally:
            self._is_being_called = False


@functools.lru_cache(maxsize=1)
def _step_wrapper() -> CodeType:
    """The code of the function that PyTorch puts around each optimizer's step, and that calls the hooks."""

    def nothing(self: Any) -> None: ...

    wrapped: Any = torch.optim.Optimizer.profile_hook_step(nothing)
    code: CodeType = wrapped.__code__
    return code
