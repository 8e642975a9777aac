"""The Ascend adapter's fused optimizers (torch_npu.optim, and apex.optimizers of its apex build)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import required

from torchferry.sim.shims.optim.base import (
    Group,
    PerParameterOptimizer,
    State,
    check,
    check_not_negative,
    global_norm,
    kept,
    moments,
    with_settings,
)
from torchferry.sim.shims.optim.combined import CombinedOptimizer

__all__ = [
    "NpuFusedAdadelta",
    "NpuFusedAdam",
    "NpuFusedAdamP",
    "NpuFusedAdamW",
    "NpuFusedBertAdam",
    "NpuFusedLamb",
    "NpuFusedRMSprop",
    "NpuFusedRMSpropTF",
    "NpuFusedSGD",
]

_LARGEST_WEIGHT_NORM = 10.0  # LAMB's clamp


@with_settings(lr=required, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False)
class NpuFusedSGD(CombinedOptimizer, torch.optim.SGD):
    """torch.optim.SGD."""


@with_settings(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False)
class NpuFusedAdam(CombinedOptimizer, torch.optim.Adam):
    """torch.optim.Adam."""


@with_settings(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False)
class NpuFusedAdamW(CombinedOptimizer, torch.optim.AdamW):
    """torch.optim.AdamW."""


@with_settings(lr=1.0, rho=0.9, eps=1e-6, weight_decay=0)
class NpuFusedAdadelta(CombinedOptimizer, torch.optim.Adadelta):
    """torch.optim.Adadelta."""


@with_settings(lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False)
class NpuFusedRMSprop(CombinedOptimizer, torch.optim.RMSprop):
    """torch.optim.RMSprop."""


@with_settings(
    lr=1e-2,
    alpha=0.9,
    eps=1e-10,
    weight_decay=0,
    momentum=0.0,
    centered=False,
    decoupled_decay=False,
    lr_in_momentum=True,
)
class NpuFusedRMSpropTF(CombinedOptimizer, PerParameterOptimizer):
    """RMSprop as TensorFlow has it: the average begins at one, eps is under the root, momentum holds the rate."""

    def _accept(self, settings: dict[str, Any]) -> None:
        check_not_negative(settings, "lr", "eps", "momentum", "weight_decay", "alpha")

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        state["step"] = state.get("step", 0) + 1
        square_average = kept(state, "square_avg", param, 1.0)
        decay, rate, fresh = group["weight_decay"], group["lr"], 1.0 - group["alpha"]
        if decay and group["decoupled_decay"]:
            param.add_(param, alpha=-decay)
        elif decay:
            grad = grad.add(param, alpha=decay)
        square_average.add_(grad.pow(2) - square_average, alpha=fresh)
        spread = square_average
        if group["centered"]:
            average = kept(state, "grad_avg", param)
            average.add_(grad - average, alpha=fresh)
            spread = square_average.addcmul(average, average, value=-1)
        root = spread.add(group["eps"]).sqrt_()
        if not group["momentum"]:
            param.addcdiv_(grad, root, value=-rate)
            return
        buffer = kept(state, "momentum_buffer", param).mul_(group["momentum"])
        if group["lr_in_momentum"]:
            param.sub_(buffer.addcdiv_(grad, root, value=rate))
        else:
            param.add_(buffer.addcdiv_(grad, root), alpha=-rate)


@with_settings(lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0, adam=False, use_global_grad_norm=False)
class NpuFusedLamb(CombinedOptimizer, PerParameterOptimizer):
    """LAMB without bias correction; the weight's norm counts up to ten."""

    own = ("adam", "use_global_grad_norm")
    adam: bool
    use_global_grad_norm: bool

    def _accept(self, settings: dict[str, Any]) -> None:
        check_not_negative(settings, "lr", "eps")
        for index, beta in enumerate(settings["betas"]):
            check(f"beta parameter at index {index}", beta, high=1.0)
        self.global_grad_norm = torch.ones(())

    def _before_updates(self) -> None:
        if self.use_global_grad_norm:
            self.global_grad_norm = global_norm(self._gradients())

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        state["step"] = state.get("step", 0) + 1
        if self.global_grad_norm > 1:
            grad = grad / self.global_grad_norm.to(grad)
        beta1, beta2 = group["betas"]
        average, square_average = moments(state, param)
        average.mul_(beta1).add_(grad, alpha=1 - beta1)
        square_average.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = average / square_average.sqrt().add(group["eps"])
        if group["weight_decay"]:
            update.add_(param, alpha=group["weight_decay"])
        weight = param.pow(2).sum().sqrt().clamp(0, _LARGEST_WEIGHT_NORM)
        size = update.pow(2).sum().sqrt()
        trust = torch.ones_like(weight) if self.adam or weight == 0 or size == 0 else weight / size
        param.add_(update * trust, alpha=-group["lr"])


@with_settings(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, delta=0.1, wd_ratio=0.1, nesterov=False)
class NpuFusedAdamP(CombinedOptimizer, PerParameterOptimizer):
    """AdamP: Adam without the part of an update that only lengthens a weight whose scale does not matter."""

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        step = state["step"] = state.get("step", 0) + 1
        beta1, beta2 = group["betas"]
        average, square_average = moments(state, param)
        average.mul_(beta1).add_(grad, alpha=1 - beta1)
        square_average.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        divisor = (square_average.sqrt() / math.sqrt(1 - beta2**step)).add_(group["eps"])
        ahead = beta1 * average + (1 - beta1) * grad if group["nesterov"] else average
        update, decay_ratio = ahead / divisor, 1.0
        if param.dim() > 1:
            update, decay_ratio = _without_radial_part(param, grad, update, group)
        if group["weight_decay"] > 0:
            param.mul_(1 - group["lr"] * group["weight_decay"] * decay_ratio)
        param.add_(update, alpha=-group["lr"] / (1 - beta1**step))


def _without_radial_part(param: Tensor, grad: Tensor, update: Tensor, group: Group) -> tuple[Tensor, float]:
    """Project an update onto the sphere of the weight, channel by channel or as a whole, where it is free of scale."""
    for rows in (param.size(0), 1):
        weight, slope = param.reshape(rows, -1), grad.reshape(rows, -1)
        length = weight.norm(dim=1, keepdim=True) + group["eps"]
        cosine = (weight * slope).sum(1).abs() / length.squeeze(1) / (slope.norm(dim=1) + group["eps"])
        if cosine.max() < group["delta"] / math.sqrt(weight.size(1)):
            unit = weight / length
            flat = update.reshape(rows, -1)
            flat = flat - unit * (unit * flat).sum(dim=1, keepdim=True)
            return flat.view_as(param), group["wd_ratio"]
    return update, 1.0


# after the warm-up, in which all of them rise in a straight line
_SCHEDULES: Mapping[str, Callable[[float, float], float]] = {
    "warmup_cosine": lambda done, _: 0.5 * (1.0 + math.cos(math.pi * done)),
    "warmup_constant": lambda _done, _warmup: 1.0,
    "warmup_linear": lambda done, warmup: max((done - 1.0) / (warmup - 1.0), 0.0),
    "warmup_poly": lambda done, _: (1.0 - done) ** 0.5,
}


@with_settings(
    lr=required,
    warmup=-1,
    t_total=-1,
    schedule="warmup_linear",
    b1=0.9,
    b2=0.999,
    e=1e-6,
    weight_decay=0.01,
    max_grad_norm=1.0,
)
class NpuFusedBertAdam(CombinedOptimizer, PerParameterOptimizer):
    """BERT's Adam: no bias correction, decay added to the update, the group's gradients clipped, a warm-up."""

    def _accept(self, settings: dict[str, Any]) -> None:
        check_not_negative(settings, "lr")
        if settings["warmup"] != -1:
            check("warmup", settings["warmup"], high=1.0)
        if settings["schedule"] not in _SCHEDULES:
            raise ValueError(f"Invalid schedule parameter: {settings['schedule']}")
        check("b1 parameter", settings["b1"], high=1.0)
        check("b2 parameter", settings["b2"], high=1.0)
        check_not_negative(settings, "e")
        self.max_grad_norm = settings["max_grad_norm"]

    def _before_updates(self) -> None:
        if self.max_grad_norm <= 0:
            return
        for group in self.param_groups:
            for dtype in (torch.float32, torch.float16):
                grads = [p.grad for p in group["params"] if p.grad is not None and p.dtype == dtype]
                coefficient = self.max_grad_norm / (global_norm(grads) + 1e-6)
                if grads and coefficient < 1:
                    for grad in grads:
                        grad.mul_(coefficient)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        step = state.get("step", 0)
        average, square_average = moments(state, param)
        average.mul_(group["b1"]).add_(grad, alpha=1 - group["b1"])
        square_average.mul_(group["b2"]).addcmul_(grad, grad, value=1 - group["b2"])
        update = average / (square_average.sqrt() + group["e"])
        if group["weight_decay"] > 0:
            update.add_(param, alpha=group["weight_decay"])
        rate = group["lr"]
        if group["t_total"] != -1:
            done, warmup = step / group["t_total"], group["warmup"]
            rate *= done / warmup if done < warmup else _SCHEDULES[group["schedule"]](done, warmup)
        param.add_(update, alpha=-rate)
        state["step"] = step + 1
