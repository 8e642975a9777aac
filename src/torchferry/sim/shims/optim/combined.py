"""Optimizers that keep parameters and gradients in combined buffers, with the limits that this brings."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from torchferry.sim.shims.optim.base import clip_gradients, on_device
from torchferry.sim.shims.optim.combining import combine, is_combined

_DTYPES = (torch.float32, torch.float16)
_AMP_STASH = "_amp_stash"  # where apex.amp keeps an optimizer's master weights


class CombinedOptimizer(Optimizer):
    """What the Ascend adapter's fused optimizers add to the rule they follow.

    The first step (or zero_grad, or clipping) moves parameters and gradients into one buffer for each dtype. On
    the card the gradients are read from that buffer ever after; whoever takes them out of it trains on old
    numbers there. Here the numbers stay right, and a warning says so.
    """

    is_fused_optimizer = True
    is_npu_fused_optimizer = True

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._begin()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "_combined_params"):
            self._begin()  # pickled and back: buffers do not travel

    def _begin(self) -> None:
        self._combined_params: list[Tensor | None] = [None] * len(_DTYPES)
        self._combined_grads: list[Tensor | None] = [None] * len(_DTYPES)
        self.register_step_pre_hook(_combine_before_step)

    @torch.no_grad()
    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set gradients to zero where they are; they can't be dropped, because the buffer stays."""
        if set_to_none:
            raise ValueError("set_to_none is not supported in fused optimizers")
        self._combine()
        super().zero_grad(set_to_none=False)

    def clip_grad_norm_fused_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm together is at most max_norm; answers the norm before."""
        self._combine()
        grads = [param.grad for params in self._with_gradient() for param in params if param.grad is not None]
        return clip_gradients(grads, max_norm, norm_type)

    def get_combined_params(self) -> list[Tensor | None]:
        """The buffers of the parameters: float32, float16."""
        return self._combined_params

    def get_combined_grads(self) -> list[Tensor | None]:
        """The buffers of the gradients: float32, float16."""
        return self._combined_grads

    def _combine(self) -> None:
        if hasattr(self, _AMP_STASH):
            return  # apex hands over new master gradients at every step
        for index, params in enumerate(self._with_gradient()):
            grads = [param.grad for param in params if param.grad is not None]
            if is_combined(self._combined_grads[index], grads):
                continue
            if self._combined_grads[index] is not None:
                self._warn_about_replaced()
            self._combined_params[index] = combine(params)
            self._combined_grads[index] = combine(grads)

    def _with_gradient(self) -> list[list[Tensor]]:
        found: list[list[Tensor]] = [[] for _ in _DTYPES]
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if not on_device(param):
                    raise RuntimeError(f"Tensors to combine must be on NPU, got {param.device.type}.")
                if param.dtype not in _DTYPES:
                    raise TypeError(
                        f"Fused optimizer's parameters must be either float32 or float16, but received {param.dtype}"
                    )
                found[_DTYPES.index(param.dtype)].append(param)
        return found

    def _warn_about_replaced(self) -> None:
        warnings.warn(
            f"{type(self).__name__}: gradients were dropped or replaced after the first step. On the card this "
            "optimizer goes on reading the buffer it combined them in, so it would train on old gradients: clear "
            "them with optimizer.zero_grad(), not with model.zero_grad() or `grad = None`",
            RuntimeWarning,
            stacklevel=2,
        )


def _combine_before_step(optimizer: Optimizer, _args: Any, _settings: Any) -> None:
    if isinstance(optimizer, CombinedOptimizer):
        with torch.no_grad():
            optimizer._combine()
