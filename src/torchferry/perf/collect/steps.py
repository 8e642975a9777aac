"""Counts the steps of a training as they are profiled: a step is over when its optimizers are done."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from torchferry.observe.patching import Patches
from torchferry.observe.steps import StepCounter

_Step = TypeVar("_Step", bound=Callable[..., Any])


class IterationCounter(StepCounter):
    """Tells that a step has ended when PyTorch's own mark around the optimizer's step has ended as well, so that no
    mark reaches from one step into the next.

    PyTorch calls its hooks inside of that mark. So this wraps what PyTorch puts around the step of each class.
    """

    def __init__(self, ended: Callable[[int], None]) -> None:
        super().__init__(ended)
        self._depth = (
            threading.local()
        )  # an optimizer may step others, or its own base class, inside its step

    def _watch_steps(self, patches: Patches) -> None:
        optimizer: Any = torch.optim.Optimizer
        original = optimizer.profile_hook_step
        # torch.compile may look into a step: these two are none of its business
        disable: Callable[[_Step], _Step] = vars(torch)["_disable_dynamo"]

        @disable
        def begins(optimizer: torch.optim.Optimizer) -> None:
            self._enters(optimizer)

        @disable
        def ends(optimizer: torch.optim.Optimizer, done: bool) -> None:
            self._leaves(optimizer, done)

        @functools.wraps(original)
        def profile_hook_step(function: _Step) -> Any:
            wrapped = original(function)

            @functools.wraps(wrapped)
            def step(*args: Any, **kwargs: Any) -> Any:
                begins(args[0])
                done = False
                try:
                    answer = wrapped(*args, **kwargs)
                    done = True
                finally:
                    ends(args[0], done)
                return answer

            return step

        patches.replace(optimizer, "profile_hook_step", staticmethod(profile_hook_step))

    def _enters(self, optimizer: torch.optim.Optimizer) -> None:
        depth = self._depth.value = getattr(self._depth, "value", 0) + 1
        if depth == 1:
            self._begins(optimizer)

    def _leaves(self, optimizer: torch.optim.Optimizer, done: bool) -> None:
        self._depth.value -= 1
        if self._depth.value:
            self._had_turn.add(optimizer)  # that of the one around it
        elif done:
            self._has_stepped(optimizer)
