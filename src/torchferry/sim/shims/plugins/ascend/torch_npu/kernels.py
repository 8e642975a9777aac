"""Normalisations, activations, matrix products, mixtures of experts and overlaps of boxes that the adapter fuses."""

from __future__ import annotations

from collections.abc import Sequence
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


fast_gelu = npu_fast_gelu


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


_ROWS, _NO_GROUPS = 0, -1  # group_type
_ENDS, _COUNTS = 0, 1  # group_list_type
_ONE_OUTPUT = (2, 3)  # split_item


def npu_moe_token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Tokens, one copy for each of their experts, sorted by expert; and where each copy went."""
    if padded_mode:
        raise NotImplementedError("torch_npu.npu_moe_token_permute: padded_mode=True is not simulated")
    copies = indices.size(1) if indices.dim() == 2 else 1
    order = torch.argsort(indices.reshape(-1), stable=True)
    kept = order[:num_out_tokens] if num_out_tokens else order
    return tokens.index_select(0, kept // copies), torch.argsort(order, stable=True).int()


def npu_moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> Tensor:
    """Each token's copies brought back together: their sum, weighted by probs; copies that were cut off count nothing."""
    if padded_mode:
        raise NotImplementedError("torch_npu.npu_moe_token_unpermute: padded_mode=True is not simulated")
    places = sorted_indices.long()
    missing = places.numel() - permuted_tokens.size(0)
    if missing:
        permuted_tokens = torch.cat(
            [permuted_tokens, permuted_tokens.new_zeros(missing, permuted_tokens.size(1))]
        )
    copies = 1 if probs is None else probs.size(1)
    tokens = permuted_tokens.index_select(0, places).reshape(-1, copies, permuted_tokens.size(-1))
    if probs is not None:
        tokens = tokens * probs.unsqueeze(-1)
    return tokens.sum(dim=1).to(permuted_tokens.dtype)


def npu_grouped_matmul(
    x: Sequence[Tensor],
    weight: Sequence[Tensor],
    *,
    bias: Sequence[Tensor] | None = None,
    group_list: Tensor | Sequence[int] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int = _ENDS,
    act_type: int = 0,
    output_dtype: torch.dtype | None = None,
    **others: Any,
) -> list[Tensor]:
    """Several matrix products in one: of pairs of tensors, or of stretches of rows with a weight each."""
    given = [name for name, value in others.items() if value is not None]
    if given or act_type or group_type not in (None, _ROWS, _NO_GROUPS):
        what = ", ".join(given) or f"act_type={act_type}, group_type={group_type}"
        raise NotImplementedError(f"torch_npu.npu_grouped_matmul: {what} is not simulated")
    weights = [part for tensor in weight for part in (tensor if tensor.dim() == 3 else [tensor])]
    rows = list(x) if group_list is None else _stretches(x, group_list, group_list_type)
    products = [part @ matrix for part, matrix in zip(rows, weights, strict=True)]
    if bias:
        biases = [part for tensor in bias for part in (tensor if tensor.dim() == 2 else [tensor])]
        products = [product + addend for product, addend in zip(products, biases, strict=True)]
    if output_dtype is not None:
        products = [product.to(output_dtype) for product in products]
    return [torch.cat(products)] if split_item in _ONE_OUTPUT else products


def _stretches(x: Sequence[Tensor], group_list: Tensor | Sequence[int], kind: int) -> list[Tensor]:
    """The rows that belong to each group; the list holds where groups end, or how long they are."""
    numbers = [int(number) for number in group_list]
    if kind == _COUNTS:
        counts = numbers
    else:
        counts = [end - start for start, end in zip([0, *numbers], numbers, strict=False)]
    joined = torch.cat(list(x))[: sum(counts)]
    return list(torch.split(joined, counts))


_EPSILON = 0.001  # what the card adds so as not to divide by zero


def npu_iou(bboxes: Tensor, gtboxes: Tensor, mode: int = 0) -> Tensor:
    """Intersection over union (mode 1: over the truth's area) of all pairs, a row for each truth, in float16."""
    shared, other = _areas(bboxes, gtboxes, mode)
    return ((shared + _EPSILON) / (other + _EPSILON)).half()


def npu_ptiou(bboxes: Tensor, gtboxes: Tensor, mode: int = 0) -> Tensor:
    """As npu_iou, with nothing added to the intersection: boxes apart give zero."""
    shared, other = _areas(bboxes, gtboxes, mode)
    return (shared / (other + _EPSILON)).half()


def _areas(bboxes: Tensor, gtboxes: Tensor, mode: int) -> tuple[Tensor, Tensor]:
    """Each pair's intersection, and what it is divided by; boxes are x1, y1, x2, y2."""
    boxes, truths = bboxes.float().unsqueeze(0), gtboxes.float().unsqueeze(1)
    corner = torch.maximum(boxes[..., :2], truths[..., :2])
    opposite = torch.minimum(boxes[..., 2:], truths[..., 2:])
    shared = (opposite - corner).clamp(min=0).prod(dim=-1)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)
    truth = (truths[..., 2:] - truths[..., :2]).prod(dim=-1)
    return shared, truth.expand_as(shared) if mode == 1 else area + truth - shared
