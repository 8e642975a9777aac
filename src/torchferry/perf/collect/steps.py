"""Counts the steps of a training as they are profiled: a step is over when its optimizers are done."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from torchferry.accuracy.record.program import StepCounter
from torchferry.observe.patching import Patches

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
        # those that step in each iteration, once it has shown that others do not
        self._regular: weakref.WeakSet[torch.optim.Optimizer] | None = None
        self._stepped: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()  # in this iteration

    def begin_anew(self) -> None:
        """In a process that has just been forked."""
        super().begin_anew()
        self._regular = None
        self._stepped.clear()

    def _watch_steps(self, patches: Patches) -> None:
        optimizer: Any = torch.optim.Optimizer
        original = optimizer.profile_hook_step
        # torch.compile may look into a step: these two are none of its business
        disable: Callable[[_Step], _Step] = vars(torch)["_disable_dynamo"]

        @disable
        def begins(optimizer: torch.optim.Optimizer) -> None:
            self._begins(optimizer)

        @disable
        def ends(optimizer: torch.optim.Optimizer, done: bool) -> None:
            self._ends(optimizer, done)

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

    def _begins(self, optimizer: torch.optim.Optimizer) -> None:
        depth = self._depth.value = getattr(self._depth, "value", 0) + 1
        if depth == 1:
            self._end_if_begun_again(optimizer)

    def _ends(self, optimizer: torch.optim.Optimizer, done: bool) -> None:
        self._depth.value -= 1
        if self._depth.value == 0 and done:
            self._make(optimizer)

    def _end_if_begun_again(self, optimizer: torch.optim.Optimizer) -> None:
        """The others did not step this time: from now on they are not waited for, else each step would end only where
        the next one's optimizer begins."""
        if optimizer in self._stepped:
            self._regular = weakref.WeakSet(self._stepped)
            self._end()

    def _make(self, optimizer: torch.optim.Optimizer) -> None:
        self._made[optimizer] = self._count(optimizer) + 1
        self._stepped.add(optimizer)
        awaited = self._optimizers if self._regular is None else self._regular
        if all(each in self._stepped for each in list(awaited)):
            self._end()

    def _end(self) -> None:
        self._stepped.clear()
        super()._end()
