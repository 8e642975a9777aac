"""What optimizers that update one parameter at a time have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import required

Group = dict[str, Any]
State = dict[str, Any]

_NO_DEVICE = "privateuseone"  # torch's name for the key that no backend has taken


class PerParameterOptimizer(Optimizer):
    """An optimizer whose step is a rule for one parameter, its gradient and its state."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._before_updates()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.is_sparse:
                    raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
                self._update(param, param.grad, self.state[param], group)
        return loss

    def _before_updates(self) -> None:
        """What is computed once a step, over all parameters."""

    @abstractmethod
    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """Apply the rule to one parameter."""

    def _gradients(self) -> list[Tensor]:
        return [
            param.grad for group in self.param_groups for param in group["params"] if param.grad is not None
        ]


def global_norm(tensors: list[Tensor]) -> Tensor:
    """The Euclidean norm of all tensors together, in single precision."""
    if not tensors:
        return torch.zeros(())
    return torch.stack([tensor.float().pow(2).sum() for tensor in tensors]).sum().sqrt()


@torch.no_grad()
def clip_gradients(grads: list[Tensor], max_norm: float, norm_type: float) -> Tensor:
    """Scale gradients so that their norm together is at most max_norm; answers the norm before."""
    if not grads:
        return torch.tensor(0.0)
    norms = torch.stack([torch.linalg.vector_norm(grad.float(), norm_type) for grad in grads])
    total: Tensor = torch.linalg.vector_norm(norms, norm_type)
    coefficient = float(max_norm) / (total + 1e-6)
    if coefficient < 1:
        for grad in grads:
            grad.mul_(coefficient)
    return total


def kept(
    state: State, name: str, param: Tensor, start: float = 0.0, dtype: torch.dtype | None = None
) -> Tensor:
    """A tensor of the parameter's shape that lives in its state, made at first use."""
    if name not in state:
        state[name] = torch.full_like(param, start, dtype=dtype)
    found: Tensor = state[name]
    return found


def moments(state: State, param: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """The running averages of the gradient and of its square."""
    return kept(state, "exp_avg", param, dtype=dtype), kept(state, "exp_avg_sq", param, dtype=dtype)


def on_device(param: Tensor) -> bool:
    """Whether a parameter is where a fused kernel finds it; without a simulated device every place is right."""
    return param.device.type != "cpu" or torch._C._get_privateuse1_backend_name() == _NO_DEVICE


def check(name: str, value: float, low: float = 0.0, high: float = math.inf) -> None:
    """Refuse a setting outside [low, high) in the words that torch's optimizers use."""
    if not low <= value < high:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas: tuple[float, float]) -> None:
    """Refuse decay rates outside [0, 1)."""
    for index, beta in enumerate(betas):
        check(f"beta parameter at index {index}", beta, high=1.0)


def given_learning_rate(params: Any, lr: Any) -> tuple[list[Any], float]:
    """The parameters as a list, and the default rate; without one, every group must bring its own."""
    listed = list(params)
    if lr is not required:
        return listed, lr
    if not listed or not all(isinstance(group, dict) and "lr" in group for group in listed):
        raise ValueError("parameter group didn't specify a value of required optimization parameter lr")
    return listed, 0.0
