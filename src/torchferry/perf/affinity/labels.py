"""Cross entropy that takes labels in int32, on devices whose kernels want them so and on those that refuse them."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional


def cross_entropy(
    input: Tensor,  # noqa: A002  torch's name for it, which callers may use
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """torch.nn.functional.cross_entropy for labels of any integer type, and for class probabilities.

    Labels in int32 stay so where the device's loss takes them; otherwise they are cast to int64, in which every device
    takes them.
    """
    return functional.cross_entropy(
        input,
        _as_taken(target, input.device.type),
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """torch.nn.CrossEntropyLoss for labels of any integer type."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of a batch."""
        return cross_entropy(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


def _as_taken(target: Tensor, device_type: str) -> Tensor:
    if target.is_floating_point() or target.dtype == torch.int64:
        return target
    # The CPU does not take int32; and nothing can be tried out while a graph is traced.
    is_traced = getattr(getattr(torch, "compiler", None), "is_compiling", bool)()
    if target.dtype == torch.int32 and device_type not in ("cpu", "meta") and not is_traced:
        return target if _computes_with_int32(device_type) else target.long()
    return target.long()


@functools.cache
def _computes_with_int32(device_type: str) -> bool:
    """Whether a small loss and its gradient come out the same for both types of labels, tried once for a device."""
    labels = torch.tensor([1, 0, 2])
    results: list[Tensor] = []
    try:
        with torch.enable_grad(), torch.autocast(device_type, enabled=False):
            for dtype in (torch.int64, torch.int32):
                scores = torch.linspace(-1, 1, 9).view(3, 3).to(device_type).requires_grad_()
                loss = functional.cross_entropy(scores, labels.to(device_type, dtype))
                (gradient,) = torch.autograd.grad(loss, scores)
                results.append(torch.cat((loss.detach().reshape(1), gradient.flatten())).cpu())
    except (RuntimeError, NotImplementedError, TypeError):
        return False
    return torch.allclose(results[0], results[1])
