"""Normalisations, activations and matrix products that the adapter fuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_MASKED = -10000.0  # what the card puts in the place of a masked score


def npu_rms_norm(tensor: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """The tensor over its root mean square times gamma, and one over the root, in float32."""
    dims = tuple(range(-gamma.dim(), 0))
    wide = tensor.float()
    reciprocal = torch.rsqrt(wide.pow(2).mean(dim=dims, keepdim=True) + epsilon)
    return (wide * reciprocal * gamma.float()).to(tensor.dtype), reciprocal


def npu_gemma_rms_norm(tensor: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """As npu_rms_norm, with one added to gamma."""
    return npu_rms_norm(tensor, gamma.float() + 1.0, epsilon)


def npu_add_rms_norm(
    first: Tensor, second: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """npu_rms_norm of a sum, and the sum."""
    total = first + second
    normed, reciprocal = npu_rms_norm(total, gamma, epsilon)
    return normed, reciprocal, total


def npu_add_layer_norm(
    first: Tensor,
    second: Tensor,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float = 1e-5,
    additional_output: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """layer_norm of a sum, its mean and one over its deviation in float32, and the sum if it is asked for."""
    total = first + second
    dims = tuple(range(-gamma.dim(), 0))
    wide = total.float()
    mean = wide.mean(dim=dims, keepdim=True)
    reciprocal = torch.rsqrt(wide.var(dim=dims, unbiased=False, keepdim=True) + epsilon)
    normed = functional.layer_norm(wide, gamma.shape, gamma.float(), beta.float(), epsilon).to(total.dtype)
    return normed, mean, reciprocal, total if additional_output else total.new_empty(0)


def npu_layer_norm_eval(
    tensor: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """torch.nn.functional.layer_norm."""
    return functional.layer_norm(tensor, normalized_shape, weight, bias, eps)


def npu_group_norm_silu(
    tensor: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """silu of group_norm, and each group's mean and one over its deviation."""
    groups = tensor.reshape(tensor.size(0), group, -1)
    mean, variance = groups.mean(-1), groups.var(-1, unbiased=False)
    normed = functional.group_norm(tensor, group, weight, bias, eps)
    return functional.silu(normed), mean, torch.rsqrt(variance + eps)


def npu_swiglu(tensor: Tensor, dim: int = -1) -> Tensor:
    """silu of the first half times the second half."""
    gate, value = tensor.chunk(2, dim=dim)
    return functional.silu(gate) * value


def npu_geglu(
    tensor: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[Tensor, Tensor]:
    """One half times gelu of the other, and that gelu."""
    left, right = tensor.chunk(2, dim=dim)
    gate, value = (left, right) if activate_left else (right, left)
    activated = functional.gelu(gate, approximate="tanh" if approximate else "none")
    return value * activated, activated


def npu_gelu(tensor: Tensor, approximate: str = "none") -> Tensor:
    """torch.nn.functional.gelu."""
    return functional.gelu(tensor, approximate=approximate)


def npu_fast_gelu(tensor: Tensor) -> Tensor:
    """The quick form of gelu: x times sigmoid of 1.702 x."""
    return tensor * torch.sigmoid(1.702 * tensor)


def npu_silu(tensor: Tensor) -> Tensor:
    """torch.nn.functional.silu."""
    return functional.silu(tensor)


def npu_silu_(tensor: Tensor) -> Tensor:
    """silu in place."""
    return functional.silu(tensor, inplace=True)


def npu_mish(tensor: Tensor) -> Tensor:
    """torch.nn.functional.mish."""
    return functional.mish(tensor)


def npu_linear(tensor: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch.nn.functional.linear."""
    return functional.linear(tensor, weight, bias)


def npu_bmmV2(tensor: Tensor, other: Tensor, output_sizes: list[int]) -> Tensor:  # noqa: N802  the card's name
    """torch.matmul, in a shape of one's own."""
    product = torch.matmul(tensor, other)
    return product.reshape(output_sizes) if output_sizes else product


def npu_scaled_masked_softmax(
    tensor: Tensor, mask: Tensor, scale: float = 1.0, fixed_triu_mask: bool = False
) -> Tensor:
    """softmax of scaled scores; where the mask is true, a score counts as -10000."""
    if fixed_triu_mask:
        mask = torch.ones(tensor.shape[-2:], dtype=torch.bool, device=tensor.device).triu(1)
    return functional.softmax((tensor * scale).masked_fill(mask.bool(), _MASKED).float(), dim=-1).to(
        tensor.dtype
    )


def npu_softmax_cross_entropy_with_logits(features: Tensor, labels: Tensor) -> Tensor:
    """The cross entropy of each row with its distribution of labels."""
    return -(labels * functional.log_softmax(features, dim=-1)).sum(dim=-1)


def npu_conv2d(
    tensor: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """torch.nn.functional.conv2d."""
    return functional.conv2d(tensor, weight, bias, stride, padding, dilation, groups)


def npu_conv3d(
    tensor: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """torch.nn.functional.conv3d."""
    return functional.conv3d(tensor, weight, bias, stride, padding, dilation, groups)


def npu_convolution(
    tensor: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """conv2d or conv3d, by the number of dimensions."""
    convolution = npu_conv3d if tensor.dim() == 5 else npu_conv2d
    return convolution(tensor, weight, bias, stride, padding, dilation, groups)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "fast_gelu": npu_fast_gelu,
    **{
        function.__name__: function
        for function in (
            npu_add_layer_norm,
            npu_add_rms_norm,
            npu_bmmV2,
            npu_conv2d,
            npu_conv3d,
            npu_convolution,
            npu_fast_gelu,
            npu_geglu,
            npu_gelu,
            npu_gemma_rms_norm,
            npu_group_norm_silu,
            npu_layer_norm_eval,
            npu_linear,
            npu_mish,
            npu_rms_norm,
            npu_scaled_masked_softmax,
            npu_silu,
            npu_silu_,
            npu_softmax_cross_entropy_with_logits,
            npu_swiglu,
        )
    },
}
