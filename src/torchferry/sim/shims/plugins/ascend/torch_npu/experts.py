"""Mixtures of experts: tokens sorted by expert, each expert's matrix product, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

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


OPERATORS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (npu_grouped_matmul, npu_moe_token_permute, npu_moe_token_unpermute)
}
