"""LARC: an optimizer's rate, held down for each weight in proportion to its norm over its gradient's."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer


class LARC:
    """Wraps an optimizer; with clip, the rate is at most the optimizer's own."""

    def __init__(
        self, optimizer: Optimizer, trust_coefficient: float = 0.02, clip: bool = True, eps: float = 1e-8
    ) -> None:
        self.optim = optimizer
        self.trust_coefficient = trust_coefficient
        self.clip = clip
        self.eps = eps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optim"], name)

    def step(self) -> None:
        """Scale the gradients, then let the optimizer step without weight decay: it is in them already."""
        decays = [group.get("weight_decay", 0) for group in self.optim.param_groups]
        with torch.no_grad():
            for group, decay in zip(self.optim.param_groups, decays, strict=True):
                group["weight_decay"] = 0
                for param in group["params"]:
                    if param.grad is not None:
                        self._scale(param, decay, group["lr"])
        self.optim.step()
        for group, decay in zip(self.optim.param_groups, decays, strict=True):
            group["weight_decay"] = decay

    def _scale(self, param: torch.Tensor, decay: float, rate: float) -> None:
        weight, slope = param.norm(), param.grad.norm()  # type: ignore[union-attr]
        if weight == 0 or slope == 0:
            return
        own = self.trust_coefficient * weight / (slope + weight * decay + self.eps)
        if self.clip:
            own = min(own / rate, torch.ones_like(own))
        param.grad.add_(param, alpha=decay).mul_(own)  # type: ignore[union-attr]
