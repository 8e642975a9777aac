"""The factor that a loss is multiplied by, so that small gradients survive float16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScaleRule:
    """How a dynamic scale begins and moves."""

    init: float = 2.0**16
    growth: float = 2.0
    backoff: float = 0.5
    window: int = 2000  # steps without overflow before the scale grows
    smallest: float | None = None
    largest: float = 2.0**24


class LossScaler:
    """A fixed scale, or one that shrinks at every overflow and grows after many steps without."""

    def __init__(self, loss_scale: float | str, rule: ScaleRule) -> None:
        self.dynamic = loss_scale == "dynamic"
        self._rule = rule
        self._loss_scale = min(rule.largest, rule.init) if self.dynamic else float(loss_scale)
        self._unskipped = 0

    def loss_scale(self) -> float:
        """The scale of the next loss."""
        return self._loss_scale

    def update_scale(self, overflow: bool) -> bool:
        """Move the scale after a backward; answers whether the step must be skipped."""
        if not self.dynamic:
            self._unskipped += 1
            return False
        if overflow:
            self._loss_scale = max(self._loss_scale * self._rule.backoff, self._rule.smallest or 0.0)
            self._unskipped = 0
            return True
        self._unskipped += 1
        if self._unskipped == self._rule.window:
            self._loss_scale = min(self._rule.largest, self._loss_scale * self._rule.growth)
            self._unskipped = 0
        return False

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"loss_scale": self._loss_scale, "unskipped": self._unskipped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where a checkpoint was written."""
        self._loss_scale = state["loss_scale"]
        self._unskipped = state["unskipped"]
