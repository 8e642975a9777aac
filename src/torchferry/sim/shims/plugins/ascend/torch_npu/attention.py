"""Attention and rotary embedding: the adapter's fused kernels, written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_ALL = 2147483647
_GIVEN, _ALL_GIVEN, _LEFT_UP_CAUSAL, _RIGHT_DOWN_CAUSAL, _BAND = range(5)  # sparse_mode
_LANES = 8  # the card answers each row's maximum and sum eight times over
Attention = tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]


def npu_rotary_mul(tensor: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half") -> Tensor:
    """A tensor turned by angles whose cosine and sine are given; pairs are halves apart or side by side."""
    if rotary_mode == "half":
        first, second = tensor.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
    elif rotary_mode == "interleave":
        first, second = tensor[..., ::2], tensor[..., 1::2]
        turned = torch.stack((-second, first), dim=-1).flatten(-2)
    else:
        raise NotImplementedError(f"torch_npu.npu_rotary_mul: rotary_mode='{rotary_mode}' is not simulated")
    return r1 * tensor + r2 * turned


def npu_apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSH", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    """npu_rotary_mul of query and key with the same angles."""
    return npu_rotary_mul(query, cos, sin, rotary_mode), npu_rotary_mul(key, cos, sin, rotary_mode)


@dataclass(frozen=True)
class _Rule:
    pse: Tensor | None
    atten_mask: Tensor | None
    scale: float
    keep_prob: float
    before: int
    after: int
    sparse_mode: int

    def hidden(self, rows: int, columns: int, device: torch.device) -> Tensor | None:
        """Where the mask is true a score does not count; None when all of them do."""
        if self.sparse_mode in (_GIVEN, _ALL_GIVEN):
            return None if self.atten_mask is None else self.atten_mask.bool()
        row = torch.arange(rows, device=device).unsqueeze(1)
        distance = torch.arange(columns, device=device) - row
        if self.sparse_mode == _LEFT_UP_CAUSAL:
            return distance > 0
        distance = distance - (columns - rows)
        if self.sparse_mode == _RIGHT_DOWN_CAUSAL:
            return distance > 0
        return (distance > self.after) | (distance < -self.before)


def npu_fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _ALL,
    next_tockens: int = _ALL,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    **others: Any,
) -> Attention:
    """softmax(scale * Q K^T + pse, masked) V, and what the card answers besides: each row's maximum and sum."""
    if padding_mask is not None or prefix is not None or any(isinstance(v, Tensor) for v in others.values()):
        raise _not_simulated("padding_mask, prefix, sink and dropout_mask")
    if sparse_mode not in range(_BAND + 1):
        raise _not_simulated(f"sparse_mode={sparse_mode}")
    rule = _Rule(pse, atten_mask, scale, keep_prob, pre_tockens, next_tockens, sparse_mode)
    if input_layout == "TND":
        ends = (actual_seq_qlen, actual_seq_kvlen)
        output, maximum, total = _each_sequence((query, key, value), ends, rule)
    else:
        heads = _heads(query, key, value, head_num, input_layout)
        output, maximum, total = _attend(*heads, rule)
        output = _from_heads(output, input_layout)
    drawn = maximum.numel() // _LANES * key.size(-2) if keep_prob < 1 else 0
    return output, maximum, total, query.new_empty(0), 0, 0, drawn


def _not_simulated(what: str) -> NotImplementedError:
    return NotImplementedError(f"torch_npu.npu_fusion_attention: {what} not simulated")


def _heads(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, layout: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch, head, sequence, width, whatever the layout was."""
    if layout == "BNSD":
        return query, key, value
    if layout == "BSND":
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    if layout not in ("BSH", "SBH"):
        raise _not_simulated(f"input_layout='{layout}'")
    width = query.size(-1) // head_num
    pairs = key.size(-1) // width  # fewer heads than the query's: they are shared
    order = (0, 2, 1, 3) if layout == "BSH" else (1, 2, 0, 3)

    def split(tensor: Tensor, count: int) -> Tensor:
        return tensor.reshape(*tensor.shape[:-1], count, -1).permute(order)

    return split(query, head_num), split(key, pairs), split(value, pairs)


def _from_heads(output: Tensor, layout: str) -> Tensor:
    if layout == "BNSD":
        return output
    if layout == "BSND":
        return output.transpose(1, 2).contiguous()
    order = (0, 2, 1, 3) if layout == "BSH" else (2, 0, 1, 3)
    return output.permute(order).flatten(-2)


def _attend(query: Tensor, key: Tensor, value: Tensor, rule: _Rule) -> tuple[Tensor, Tensor, Tensor]:
    """Attention in single precision; a row that is hidden as a whole gives zeros."""
    shared = query.size(1) // key.size(1)
    if shared > 1:
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    scores = query.float() @ key.float().transpose(-1, -2) * rule.scale
    if rule.pse is not None:
        scores = scores + rule.pse.float()
    hidden = rule.hidden(scores.size(-2), scores.size(-1), scores.device)
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    maximum = scores.amax(dim=-1, keepdim=True)
    powers = torch.exp(scores - maximum.masked_fill(maximum == float("-inf"), 0.0))
    total = powers.sum(dim=-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    if rule.keep_prob < 1:
        weights = functional.dropout(weights, 1 - rule.keep_prob)
    output = (weights @ value.float()).to(query.dtype)
    lanes = (*maximum.shape[:-1], _LANES)
    return output, maximum.detach().expand(lanes), total.detach().expand(lanes)


def _each_sequence(
    inputs: tuple[Tensor, Tensor, Tensor],
    ends: tuple[Sequence[int] | None, Sequence[int] | None],
    rule: _Rule,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sequences of different lengths one after the other; `ends` says where each one ends."""
    query, key, value = inputs
    if ends[0] is None or ends[1] is None:
        raise ValueError("input_layout='TND' needs actual_seq_qlen and actual_seq_kvlen")
    results = []
    start = key_start = 0
    for end, key_end in zip(ends[0], ends[1], strict=True):
        parts = (query[start:end], key[key_start:key_end], value[key_start:key_end])
        mask = rule.atten_mask
        if mask is not None and rule.sparse_mode in (_GIVEN, _ALL_GIVEN):
            mask = mask[..., : end - start, : key_end - key_start]
        heads = [part.transpose(0, 1).unsqueeze(0) for part in parts]
        results.append(_attend(heads[0], heads[1], heads[2], replace(rule, atten_mask=mask)))
        start, key_start = end, key_end
    output, maximum, total = (torch.cat(column, dim=2).squeeze(0) for column in zip(*results, strict=True))
    return output.transpose(0, 1).contiguous(), maximum, total
