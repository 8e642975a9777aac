"""Which results would become zeros in float16."""

from __future__ import annotations

import torch

from torchferry.accuracy.overflow.calls import CheckedCall
from torchferry.accuracy.overflow.model import HALF_ZERO, Seen, Underflow
from torchferry.observe.where import OPTIMIZER

_WIDE = (torch.float32, torch.float64, torch.bfloat16)
_SMALLEST_SHARE = 0.01
_MOST = 5


class Underflows:
    """The operators and modules that would lose the most."""

    def __init__(self) -> None:
        self._worst: dict[tuple[str, str, str], Underflow] = {}

    def look(self, call: CheckedCall, seen: Seen) -> None:
        """At results of the host; optimizers keep their own precision. Call it inside `unobserved()`."""
        if call.site.phase == OPTIMIZER:
            return
        for _, tensor in call.outputs:
            if tensor.dtype in _WIDE and tensor.device.type == "cpu" and tensor.numel():
                sizes = tensor.detach().abs()
                present = int(sizes.count_nonzero())
                lost = int(((sizes > 0) & (sizes < HALF_ZERO)).sum())
                if present and lost / present >= _SMALLEST_SHARE:
                    self._add(Underflow(lost / present, seen))

    def _add(self, found: Underflow) -> None:
        key = (found.call.operator, found.call.module, found.call.place)
        if key not in self._worst or self._worst[key].share < found.share:
            self._worst[key] = found

    def worst(self) -> tuple[Underflow, ...]:
        """The greatest share first."""
        return tuple(sorted(self._worst.values(), key=lambda each: -each.share)[:_MOST])
