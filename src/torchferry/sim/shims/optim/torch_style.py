"""Fused optimizers that take torch's own arguments and follow torch's own rule, and LARS."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from torchferry.sim.shims.optim.base import (
    Group,
    PerParameterOptimizer,
    State,
    VendorOptimizer,
    check_not_negative,
    on_device,
    with_settings,
)

__all__ = ["FusedAdam", "FusedAdamW", "FusedIntelLARS", "FusedSGD"]


class OnDeviceOptimizer(VendorOptimizer):
    """Refuses parameters that a fused kernel can't reach."""

    def _start(self, params: Any, settings: dict[str, Any]) -> None:
        super()._start(params, settings)
        self.register_step_pre_hook(_refuse_others)


def _refuse_others(optimizer: Optimizer, _args: Any, _settings: Any) -> None:
    for group in optimizer.param_groups:
        for param in group["params"]:
            if not on_device(param):
                device = torch._C._get_privateuse1_backend_name().upper()
                raise RuntimeError(f"all parameters should on {device} device")


class _AdamOnDevice(OnDeviceOptimizer):
    def _accept(self, settings: dict[str, Any]) -> None:
        if settings.pop("differentiable"):
            raise RuntimeError(f"{type(self).__name__} does not support differentiable=True")
        settings.pop("capturable")  # each operator by itself can be captured


_ADAM = {
    "lr": 1e-3,
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 0,
    "amsgrad": False,
    "maximize": False,
    "capturable": False,
    "differentiable": False,
}


@with_settings(**_ADAM)
class FusedAdam(_AdamOnDevice, torch.optim.Adam):
    """torch.optim.Adam."""


@with_settings(**{**_ADAM, "weight_decay": 1e-2})
class FusedAdamW(_AdamOnDevice, torch.optim.AdamW):
    """torch.optim.AdamW."""


@with_settings(lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False)
class FusedSGD(OnDeviceOptimizer, torch.optim.SGD):
    """torch.optim.SGD."""


@with_settings(lr=1e-3, momentum=0, eeta=1e-3, weight_decay=0, epsilon=0.0)
class FusedIntelLARS(VendorOptimizer, PerParameterOptimizer):
    """LARS: every weight's rate in proportion to its norm over its gradient's; groups with lars=False are SGD."""

    def _accept(self, settings: dict[str, Any]) -> None:
        check_not_negative(settings, "lr", "momentum", "epsilon", "weight_decay")
        if not 0 < settings["eeta"] <= 1:
            raise ValueError(f"Invalid eeta value: {settings['eeta']}")
        settings["lars"] = True

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
