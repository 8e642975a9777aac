"""Tensors in one flat buffer, and the Ascend adapter's optimizers that keep parameters and gradients so, with the limits that this brings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from torchferry.sim.shims.optim.base import VendorOptimizer, clip_gradients, on_device


@torch.no_grad()
def combine(tensors: Sequence[Tensor], copy_values: bool = True) -> Tensor | None:
    """Move tensors of one dtype and device into one buffer, in place, and answer that buffer."""
    if not tensors or not sum(tensor.numel() for tensor in tensors):
        return None
    first = tensors[0]
    if any(tensor.dtype != first.dtype or tensor.device != first.device for tensor in tensors):
        raise RuntimeError("tensors to combine must have the same dtype and be on the same device")
    buffer = torch.zeros(sum(tensor.numel() for tensor in tensors), dtype=first.dtype, device=first.device)
    offset = 0
    for tensor in tensors:
        # with its own strides if it is dense (channels last), else row by row
        dense = torch.empty_like(tensor, device="meta")
        part = torch.as_strided(buffer, tensor.size(), dense.stride(), offset)
        if copy_values:
            part.copy_(tensor)
        tensor.data = part
        offset += tensor.numel()
    return buffer


def part_of(buffer: Tensor | None, offset: int, size: int) -> Tensor | None:
    """A stretch of a combined buffer that shares its memory."""
    if buffer is None or size == 0:
        return None
    if offset + size > buffer.numel():
        raise RuntimeError(f"{size} elements from {offset} on are more than the buffer's {buffer.numel()}")
    return buffer.narrow(0, offset, size)


def is_combined(buffer: Tensor | None, tensors: Sequence[Tensor | None]) -> bool:
    """Whether every tensor still lies in the buffer."""
    full = [tensor for tensor in tensors if tensor is None or tensor.numel()]  # an empty one lies nowhere
    if not full:
        return True
    if buffer is None:
        return False
    start = buffer.data_ptr()
    end = start + buffer.numel() * buffer.element_size()
    return all(
        tensor is not None and tensor.device == buffer.device and start <= tensor.data_ptr() < end
        for tensor in full
    )


_DTYPES = (torch.float32, torch.float16)
_AMP_STASH = "_amp_stash"  # where apex.amp keeps an optimizer's master weights


class CombinedOptimizer(VendorOptimizer):
    """What the Ascend adapter's fused optimizers add to the rule they follow.

    The first step (or zero_grad, or clipping) moves parameters and gradients into one buffer for each dtype. On
    the card the gradients are read from that buffer ever after; whoever takes them out of it trains on old
    numbers there. Here the numbers stay right, and a warning says so.
    """

    is_fused_optimizer = True
    is_npu_fused_optimizer = True

    def _start(self, params: Any, settings: dict[str, Any]) -> None:
        super()._start(params, settings)
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
