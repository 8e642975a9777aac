"""FusedAdam, FusedSGD and FusedLAMB as apex defines them; several vendors ship them under these names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import required

from torchferry.sim.shims.optim.base import (
    Group,
    PerParameterOptimizer,
    State,
    VendorOptimizer,
    check_not_negative,
    global_norm,
    moments,
    with_settings,
)

__all__ = ["FusedAdam", "FusedLAMB", "FusedLAMBAMP", "FusedSGD"]


class _ApexOptimizer(VendorOptimizer, PerParameterOptimizer):
    """Counts steps by group and drops gradients unless told otherwise, as apex does."""

    set_grad_none: bool

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Drop or clear the gradients; without an argument, as the constructor said."""
        super().zero_grad(set_to_none=self.set_grad_none if set_to_none is None else set_to_none)

    def _before_updates(self) -> None:
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1


def _corrections(group: Group) -> tuple[float, float]:
    """By how much the running averages fall short of the true ones so far."""
    if not group["bias_correction"]:
        return 1.0, 1.0
    beta1, beta2 = group["betas"]
    return 1 - beta1 ** int(group["step"]), 1 - beta2 ** int(group["step"])


def _refuse_amsgrad(name: str, settings: dict[str, Any]) -> None:
    if settings.pop("amsgrad"):
        raise RuntimeError(f"{name} does not support the AMSGrad variant.")


@with_settings(
    lr=1e-3,
    bias_correction=True,
    betas=(0.9, 0.999),
    eps=1e-8,
    adam_w_mode=True,
    weight_decay=0.0,
    amsgrad=False,
    set_grad_none=True,
)
class FusedAdam(_ApexOptimizer):
    """AdamW, or Adam with adam_w_mode=False; the averages are kept in float32 whatever the parameter is."""

    own = ("adam_w_mode", "set_grad_none")
    adam_w_mode: bool

    def _accept(self, settings: dict[str, Any]) -> None:
        _refuse_amsgrad("FusedAdam", settings)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        value, slope = _wide(param), _wide(grad)
        beta1, beta2 = group["betas"]
        average, square_average = moments(state, param, value.dtype)
        if self.adam_w_mode:
            value = value.mul(1 - group["lr"] * group["weight_decay"])
        elif group["weight_decay"]:
            slope = slope.add(value, alpha=group["weight_decay"])
        average.lerp_(slope, 1 - beta1)
        square_average.mul_(beta2).addcmul_(slope, slope, value=1 - beta2)
        short, square_short = _corrections(group)
        divisor = (square_average.sqrt() / math.sqrt(square_short)).add_(group["eps"])
        param.copy_(value.addcdiv(average, divisor, value=-group["lr"] / short))


@with_settings(
    lr=required,
    momentum=0.0,
    dampening=0.0,
    weight_decay=0.0,
    nesterov=False,
    wd_after_momentum=False,
    materialize_master_grads=True,
    set_grad_none=False,
)
class FusedSGD(_ApexOptimizer):
    """torch.optim.SGD, with weight decay before or after the momentum."""

    own = ("wd_after_momentum", "materialize_master_grads", "set_grad_none")
    wd_after_momentum: bool

    def _accept(self, settings: dict[str, Any]) -> None:
        check_not_negative(settings, "lr", "momentum", "weight_decay")
        if settings["nesterov"] and (settings["momentum"] <= 0 or settings["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _before_updates(self) -> None:
        """No step is counted: nothing depends on it."""

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        decay, momentum = group["weight_decay"], group["momentum"]
        if decay and not self.wd_after_momentum:
            grad = grad.add(param, alpha=decay)
        if momentum:
            if "momentum_buffer" in state:
                buffer = state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            else:
                buffer = state["momentum_buffer"] = grad.clone()
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        if decay and self.wd_after_momentum:
            grad = grad.add(param, alpha=decay)
        param.add_(grad, alpha=-group["lr"])


@with_settings(
    lr=1e-3,
    bias_correction=True,
    betas=(0.9, 0.999),
    eps=1e-6,
    weight_decay=0.01,
    amsgrad=False,
    adam_w_mode=True,
    grad_averaging=True,
    set_grad_none=True,
    max_grad_norm=1.0,
    use_nvlamb=False,
)
class FusedLAMB(_ApexOptimizer):
    """LAMB with bias correction, all gradients clipped together first."""

    own = ("adam_w_mode", "set_grad_none", "use_nvlamb")
    adam_w_mode: bool
    use_nvlamb: bool
    _clip = 1.0

    def _accept(self, settings: dict[str, Any]) -> None:
        _refuse_amsgrad("FusedLAMB", settings)

    def _before_updates(self) -> None:
        super()._before_updates()
        grads = self._gradients()
        for grad in grads:
            if grad.dtype not in (torch.float16, torch.float32):
                raise RuntimeError("FusedLAMB only support fp16 and fp32.")
        limit = self.defaults["max_grad_norm"]
        norm = global_norm(grads)
        self._clip = float(norm / limit) if limit and norm > limit else 1.0

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        value, slope = _wide(param), _wide(grad) / self._clip
        beta1, beta2 = group["betas"]
        decay = group["weight_decay"]
        average, square_average = moments(state, param)
        if not self.adam_w_mode and decay:
            slope = slope.add(value, alpha=decay)
        average.mul_(beta1).add_(slope, alpha=1 - beta1 if group["grad_averaging"] else 1.0)
        square_average.mul_(beta2).addcmul_(
            slope.to(square_average), slope.to(square_average), value=1 - beta2
        )
        short, square_short = _corrections(group)
        update = (_wide(average) / short) / ((_wide(square_average) / square_short).sqrt() + group["eps"])
        if self.adam_w_mode and decay:
            update = update.add(value, alpha=decay)
        rate: Tensor | float = group["lr"]
        if self.use_nvlamb or decay:
            weight, size = value.norm(), update.norm()
            if weight != 0 and size != 0:
                rate = rate * weight / size
        param.copy_(value - rate * update)


class FusedLAMBAMP(FusedLAMB):
    """FusedLAMB that keeps float32 copies of float16 parameters, and unscales by the scaler it is given."""

    def __init__(self, params: Any, lr: float = 1e-3, step: int = 0, **settings: Any) -> None:
        super().__init__(params, lr, **settings)
        for group in self.param_groups:
            group["step"] = step
        self._wide_copies: dict[Tensor, Tensor] = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None, grad_scaler: Any = None) -> Any:
        """Update; with a scaler, only if no gradient overflowed."""
        if grad_scaler is not None:
            grad_scaler.unscale_(self)
            if any(not torch.isfinite(grad).all() for grad in self._gradients()):
                return None
        return super().step(closure)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if param.dtype == torch.float32:
            super()._update(param, grad, state, group)
            return
        copy = self._wide_copies.setdefault(param, param.detach().float())
        super()._update(copy, grad.float(), state, group)
        param.copy_(copy)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
