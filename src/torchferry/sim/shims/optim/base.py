"""What the vendors' optimizers have in common: constructors of their own, steps of one parameter at a time."""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import required

Group = dict[str, Any]
State = dict[str, Any]

_IN_WORDS = {"lr": "learning rate", "eps": "epsilon value", "e": "epsilon value"}
_NO_DEVICE = "privateuseone"  # torch's name for the key that no backend has taken


class VendorOptimizer(Optimizer):
    """An optimizer with a vendor's constructor, see `with_settings`; the rule is that of the next base class."""

    own: ClassVar[tuple[str, ...]] = ()  # settings of the optimizer as a whole, which its groups don't have

    if TYPE_CHECKING:

        def __init__(self, params: Any, *settings: Any, **named: Any) -> None: ...

    def _accept(self, settings: dict[str, Any]) -> None:
        """Refuse what the vendor refuses, and put settings as the rule takes them."""

    def _start(self, params: Any, settings: dict[str, Any]) -> None:
        if settings.get("lr") is required:
            params = list(params)
            if not params or not all(isinstance(group, dict) and "lr" in group for group in params):
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter lr"
                )
            settings["lr"] = 0.0
        self._accept(settings)
        for name in self.own:
            setattr(self, name, settings.pop(name))
        if isinstance(self, PerParameterOptimizer):
            super().__init__(params, settings)
        else:
            rule: Any = super()
            rule.__init__(params, **settings, foreach=False)


_Class = TypeVar("_Class", bound=type[VendorOptimizer])


def with_settings(**defaults: Any) -> Callable[[_Class], _Class]:
    """Give an optimizer a constructor that takes parameters and these settings, in this order, with these defaults;
    a rate that is `required` may be left out where every group brings its own."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    settings = [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]
    signature = inspect.Signature(
        [*(inspect.Parameter(name, kind) for name in ("self", "params")), *settings]
    )

    def decorate(optimizer: _Class) -> _Class:
        def __init__(self: VendorOptimizer, *args: Any, **given: Any) -> None:  # noqa: N807
            bound = signature.bind(self, *args, **given)
            bound.apply_defaults()
            _, params, *values = bound.arguments.values()
            self._start(params, dict(zip(defaults, values, strict=True)))

        __init__.__qualname__ = f"{optimizer.__qualname__}.__init__"
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        optimizer.__init__ = __init__  # type: ignore[method-assign]
        return optimizer

    return decorate


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


def check_not_negative(settings: dict[str, Any], *names: str) -> None:
    """Refuse settings below 0 in the words that torch's optimizers use."""
    for name in names:
        check(_IN_WORDS.get(name, f"{name} value"), settings[name])
