"""What a step of a training is, who is told of it, and what GradScalers do to it."""

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

_Optimizers = weakref.WeakSet[torch.optim.Optimizer]
_SCALER: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
_StepHook = Callable[[torch.optim.Optimizer, Any, Any], None]


class StepCounter:
    """Tells when a step has ended: each optimizer has had its turn, or one of them begins another one.

    Who had no turn in such a step is not waited for any more, until it has one. A turn is a step of the optimizer, or one
    that a GradScaler has it leave out. Passes that only gather gradients, the calls of a closure, and optimizers inside
    of an optimizer belong to the turn that they lead to.
    """

    def __init__(self, ended: Callable[[int], None]) -> None:
        self.number = 1  # of the step that is being made
        self._ended = ended
        self._updates = 0  # steps that have ended and in which an optimizer has stepped
        self._has_update = False  # the step that is being made
        self._optimizers: _Optimizers = weakref.WeakSet()
        self._regular: _Optimizers | None = None  # those who have a turn in each step; None: not known yet
        self._had_turn: _Optimizers = weakref.WeakSet()  # in the step that is being made
        self._counts: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()

    @property
    def updates(self) -> int:
        """How many steps have changed weights: not those that a GradScaler has left out. The first one counts as soon as
        an optimizer has stepped in it."""
        return self._updates or int(self._has_update)

    def begin_anew(self) -> None:
        """Count from the first step, in a process that has just been forked."""
        self.number, self._updates, self._has_update, self._regular = 1, 0, False, None
        self._had_turn.clear()

    def watch(self, patches: Patches, hooks: Patches | None = None) -> None:
        """Every optimizer, until the patches are taken back; its hooks may be taken back later."""
        remember_optimizers(patches, self._optimizers)
        self._watch_steps(patches if hooks is None else hooks)
        self._watch_scalers(patches)

    def _watch_steps(self, patches: Patches) -> None:
        def before(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
            if is_outermost_step():
                self._begins(optimizer)

        def after(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
            if is_outermost_step():
                self._has_stepped(optimizer)
            else:
                self._had_turn.add(optimizer)  # that of the one around it

        patches.add(_StepHooks(before, after).remove)

    def _watch_scalers(self, patches: Patches) -> None:
        """A GradScaler that finds an infinite gradient does not step; the next forward pass is another step all the
        same."""
        original = _SCALER.step
        counts = self._counts

        @functools.wraps(original)
        def step(scaler: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            before = counts.get(optimizer, 0)
            answer = original(scaler, optimizer, *args, **kwargs)
            if counts.get(optimizer, 0) == before:
                self._leaves_out(optimizer)
            return answer

        patches.replace(_SCALER, "step", step)

    def _begins(self, optimizer: torch.optim.Optimizer) -> None:
        self._begins_turn(optimizer)

    def _begins_turn(self, optimizer: torch.optim.Optimizer) -> None:
        """If it is the second one in this step, the others have had theirs, those that step seldom aside."""
        if optimizer in self._had_turn:
            self._regular = weakref.WeakSet(self._had_turn)
            self._end()

    def _has_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        self._has_update = True
        self._has_turn(optimizer)

    def _leaves_out(self, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler lets it have its turn without a step."""
        self._begins_turn(optimizer)
        self._has_turn(optimizer)

    def _has_turn(self, optimizer: torch.optim.Optimizer) -> None:
        self._had_turn.add(optimizer)
        awaited = self._optimizers if self._regular is None else self._regular
        if all(each in self._had_turn for each in list(awaited)):
            self._end()

    def _end(self) -> None:
        ended, self.number = self.number, self.number + 1
        self._updates, self._has_update = self._updates + self._has_update, False
        self._had_turn.clear()
        self._ended(ended)


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


class _StepHooks:
    """Two hooks. None can be removed while PyTorch goes through them, as it calls one: then they stay, and do nothing."""

    def __init__(self, before: _StepHook, after: _StepHook) -> None:
        self._is_on = True
        self._is_being_called = False
        self._handles: list[Any] = [
            optimizers.register_optimizer_step_pre_hook(functools.partial(self._call, before)),
            optimizers.register_optimizer_step_post_hook(functools.partial(self._call, after)),
        ]

    def remove(self) -> None:
        self._is_on = False
        if not self._is_being_called:
            self._remove()

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()

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


Scaled = Callable[[Any, Any, Any], None]  # scaler, what it was given, what it answered
_watching: list[Scaled] = []
_patches = Patches()  # there are some while somebody watches


def watch_scalers(scaled: Scaled) -> None:
    """Tell of every loss that is scaled from now on."""
    _watching.append(scaled)
    if len(_watching) > 1:
        return
    for kind in _kinds_of(_SCALER):
        _wrap(kind)


def unwatch_scalers(scaled: Scaled) -> None:
    """Tell of scaled losses no longer."""
    if scaled in _watching:
        _watching.remove(scaled)
    if not _watching:
        _patches.take_back()


def scale_of(scaler: Any) -> float:
    """What it multiplies losses with now."""
    return float(scaler.get_scale())


def is_skipping(scaler: Any) -> bool:
    """Whether an optimizer does not step this time; known from the scaler's `step` or `unscale_` to its `update`."""
    states = getattr(scaler, "_per_optimizer_states", {})
    found = [each for state in states.values() for each in state.get("found_inf_per_device", {}).values()]
    return any(float(each.item()) > 0 for each in found)


def _kinds_of(base: Any) -> list[Any]:
    """Vendors' classes have methods of their own."""
    return [base, *(kind for child in base.__subclasses__() for kind in _kinds_of(child))]


def _wrap(kind: Any) -> None:
    if "scale" not in vars(kind):
        return
    original = kind.scale
    inside: set[int] = set()  # a class may call the same method of its base

    @functools.wraps(original)
    def scale(self: Any, outputs: Any) -> Any:
        if not _watching or id(self) in inside or not self.is_enabled():
            return original(self, outputs)
        inside.add(id(self))
        try:
            result = original(self, outputs)
        finally:
            inside.discard(id(self))
        for scaled in list(_watching):
            scaled(self, outputs, result)
        return result

    _patches.replace(kind, "scale", scale)
