"""Counts the steps of a training: of one optimizer, of several, and those that a gradient scaler leaves out."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch

from torchferry.observe.patching import Patches
from torchferry.observe.steps import hook_steps, is_outermost_step, remember_optimizers


class StepCounter:
    """Tells when a step has ended: every optimizer has made its own, or one of them begins another one."""

    def __init__(self, ended: Callable[[int], None]) -> None:
        self.number = 1  # of the step that is being made
        self._ended = ended
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._made: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()

    @property
    def made(self) -> int:
        """How many steps the optimizer that steps most has made."""
        return max(self._made.values(), default=0)

    def begin_anew(self) -> None:
        """In a process that has just been forked."""
        self.number = 1
        self._made.clear()

    def watch(self, patches: Patches) -> None:
        """Every optimizer, until the patches are taken back."""
        remember_optimizers(patches, self._optimizers)
        self._watch_steps(patches)
        self._watch_scalers(patches)

    def _watch_steps(self, patches: Patches) -> None:
        hook_steps(patches, self._before, self._after)

    def _watch_scalers(self, patches: Patches) -> None:
        """A GradScaler that finds an infinite gradient does not step; the next forward pass is another step all the
        same."""
        scaler: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        original = scaler.step
        count = self._count

        @functools.wraps(original)
        def step(self: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            before = count(optimizer)
            answer = original(self, optimizer, *args, **kwargs)
            if count(optimizer) == before:
                skipped(optimizer)
            return answer

        def skipped(optimizer: torch.optim.Optimizer) -> None:
            self._end_if_begun_again(optimizer)
            self._make(optimizer)

        patches.replace(scaler, "step", step)

    def _count(self, optimizer: torch.optim.Optimizer) -> int:
        return self._made.get(optimizer, 0)

    def _before(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if is_outermost_step():
            self._end_if_begun_again(optimizer)

    def _after(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if is_outermost_step():
            self._make(optimizer)

    def _end_if_begun_again(self, optimizer: torch.optim.Optimizer) -> None:
        """The others have had their turn, those that step seldom aside."""
        if self._count(optimizer) >= self.number:
            self._end()

    def _make(self, optimizer: torch.optim.Optimizer) -> None:
        self._made[optimizer] = self._count(optimizer) + 1
        if all(self._count(each) >= self.number for each in list(self._optimizers)):
            self._end()

    def _end(self) -> None:
        ended = self.number
        self.number = ended + 1
        self._ended(ended)
