"""Attention by its definition, and its gradients by autograd: for the kernels that only one device has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchferry.accuracy.replay.arguments import CannotExecuteError

Arguments = Mapping[str, Any]


def _refuse_dropout(given: Arguments) -> None:
    if given.get("dropout_p", 0.0):
        raise CannotExecuteError("attention with dropout: which elements it has dropped is not recorded")


def _mask(given: Arguments) -> torch.Tensor | None:
    for name in ("attn_mask", "attn_bias"):
        if given.get(name) is not None:
            found: torch.Tensor = given[name]
            return found
    return None


def _defined(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, given: Arguments
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and the logarithm of what each row of weights was divided by."""
    if key.shape[1] != query.shape[1]:  # several heads of the query share one of the key
        key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        value = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    scale = given.get("scale")
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = query @ key.transpose(-2, -1) * scale
    mask = _mask(given)
    if mask is not None:
        weights = weights.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else weights + mask
    if given.get("is_causal"):
        seen = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
        weights = weights.masked_fill(~seen, -math.inf)
    total = torch.logsumexp(weights, -1)
    return torch.exp(weights - total.unsqueeze(-1)).nan_to_num(0.0) @ value, total


def _forward(given: Arguments) -> Any:
    _refuse_dropout(given)
    result, total = _defined(given["query"], given["key"], given["value"], given)
    return (result, total, *[None] * 7)


def _backward(given: Arguments) -> Any:
    _refuse_dropout(given)
    gradient = given.get("grad_out", given.get("grad_out_"))
    with torch.enable_grad():
        query, key, value = (given[name].detach().requires_grad_() for name in ("query", "key", "value"))
        result, _ = _defined(query, key, value, given)
        return (*torch.autograd.grad(result, [query, key, value], gradient), None)


FORMULAS: dict[str, Callable[[Arguments], Any]] = {
    "aten::_scaled_dot_product_flash_attention": _forward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _forward,
    "aten::_scaled_dot_product_efficient_attention": _forward,
    "aten::_scaled_dot_product_cudnn_attention": _forward,
    "aten::_scaled_dot_product_fused_attention_overrideable": _forward,
    "aten::_scaled_dot_product_flash_attention_backward": _backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _backward,
    "aten::_scaled_dot_product_efficient_attention_backward": _backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": _backward,
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _backward,
}
