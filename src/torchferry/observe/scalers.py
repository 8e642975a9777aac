"""Tells of GradScalers: which losses they scale, and whether they let an optimizer step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchferry.observe.patching import Patches

Scaled = Callable[[Any, Any, Any], None]  # scaler, what it was given, what it answered
_watching: list[Scaled] = []
_patches = Patches()  # there are some while somebody watches


def watch_scalers(scaled: Scaled) -> None:
    """From now on, tell of every loss that is scaled."""
    _watching.append(scaled)
    if len(_watching) > 1:
        return
    base: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    for kind in _kinds_of(base):
        _wrap(kind)


def unwatch_scalers(scaled: Scaled) -> None:
    """No longer."""
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
