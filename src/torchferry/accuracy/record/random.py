"""The states of generators that random operators draw from."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from torchferry.accuracy.model import RandomState
from torchferry.accuracy.record.plans import Plan
from torchferry.observe.modes import unobserved


class Generators:
    """Keeps each state once for as long as it does not change. `append` takes bytes and answers where they lie."""

    def __init__(self, append: Callable[[bytes], int]) -> None:
        self._append = append
        self._last: dict[int, tuple[bytes, RandomState]] = {}  # by the generator

    def state(
        self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]
    ) -> RandomState | None:
        """What the call is about to draw from; None if that can't be told."""
        with unobserved():
            try:
                generator = plan.argument("generator", args, kwargs) or _default(plan, args, kwargs, tensors)
                state = generator.get_state()
                data = ctypes.string_at(state.data_ptr(), state.numel())
            except (
                RuntimeError,
                AttributeError,
                IndexError,
            ):  # no such generator, or a graph is being captured
                return None
            last = self._last.get(id(generator))
            if last is None or last[0] != data:
                where = RandomState(str(generator.device), self._append(data), len(data))
                last = self._last[id(generator)] = (data, where)
            return last[1]


def _default(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> Any:
    """The default generator of the device that the call computes on."""
    given = plan.argument("device", args, kwargs)
    device = (
        torch.device(given) if given is not None else tensors[0].device if tensors else torch.device("cpu")
    )
    if device.type == "cpu":
        return torch.default_generator
    module = getattr(torch, device.type)
    generators = module.default_generators
    return generators[module.current_device() if device.index is None else device.index]
