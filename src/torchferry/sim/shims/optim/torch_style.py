"""Fused optimizers that take torch's own arguments and follow torch's own rule, and LARS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from torchferry.sim.shims.optim.base import Group, PerParameterOptimizer, State, check, on_device

Betas = tuple[float, float]


class OnDeviceOptimizer(Optimizer):
    """Refuses parameters that a fused kernel can't reach."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.register_step_pre_hook(_refuse_others)


def _refuse_others(optimizer: Optimizer, _args: Any, _settings: Any) -> None:
    for group in optimizer.param_groups:
        for param in group["params"]:
            if not on_device(param):
                device = torch._C._get_privateuse1_backend_name().upper()
                raise RuntimeError(f"all parameters should on {device} device")


class FusedAdam(OnDeviceOptimizer, torch.optim.Adam):
    """torch.optim.Adam."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _refuse_differentiable(type(self).__name__, differentiable)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=False, maximize=maximize)


class FusedAdamW(OnDeviceOptimizer, torch.optim.AdamW):
    """torch.optim.AdamW."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _refuse_differentiable(type(self).__name__, differentiable)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=False, maximize=maximize)


class FusedSGD(OnDeviceOptimizer, torch.optim.SGD):
    """torch.optim.SGD."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, foreach=False)


class FusedIntelLARS(PerParameterOptimizer):
    """LARS: every weight's rate in proportion to its norm over its gradient's; groups with lars=False are SGD."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        eeta: float = 1e-3,
        weight_decay: float = 0,
        epsilon: float = 0.0,
    ) -> None:
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("epsilon value", epsilon)):
            check(name, value)
        check("weight_decay value", weight_decay)
        if not 0 < eeta <= 1:
            raise ValueError(f"Invalid eeta value: {eeta}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "eeta": eeta,
            "weight_decay": weight_decay,
            "epsilon": epsilon,
            "lars": True,
        }
        super().__init__(params, defaults)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        rate, decay = group["lr"], group["weight_decay"]
        if group["lars"]:
            weight, slope = param.norm(), grad.norm()
            if weight > 0 and slope > 0:
                rate *= float(group["eeta"] * weight / (slope + decay * weight + group["epsilon"]))
            if decay:
                grad = grad.add(param, alpha=decay)
        if group["momentum"]:
            if "momentum_buffer" in state:
                grad = state["momentum_buffer"].mul_(group["momentum"]).add_(grad)
            else:
                grad = state["momentum_buffer"] = grad.clone()
        param.add_(grad, alpha=-rate)


def _refuse_differentiable(name: str, differentiable: bool) -> None:
    if differentiable:
        raise RuntimeError(f"{name} does not support differentiable=True")


OPTIMIZERS: Mapping[str, type[Optimizer]] = {
    optimizer.__name__: optimizer for optimizer in (FusedAdam, FusedAdamW, FusedIntelLARS, FusedSGD)
}
