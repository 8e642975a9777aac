"""The formulas compute what the functions compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchferry.onnx_export.formulas import formulas

F = torch.nn.functional
Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 8)
MASK = torch.rand(5, 7) > 0.3
MASK[:, 0] = True
BLIND = torch.rand(5, 5) > 0.3
BLIND[2] = False
NUMBERS = torch.arange(12).reshape(3, 4)

CALLS: dict[str, Any] = {
    "attention": lambda: F.scaled_dot_product_attention(Q, Q, Q),
    "attention, causal, scaled": lambda: F.scaled_dot_product_attention(Q, Q, Q, is_causal=True, scale=0.3),
    "attention, boolean mask, groups": lambda: F.scaled_dot_product_attention(Q, K, V, MASK, enable_gqa=True),
    "attention, added mask": lambda: F.scaled_dot_product_attention(Q[:, :2], K, V, torch.randn(5, 7)),
    "attention, rows that may look at nothing": lambda: F.scaled_dot_product_attention(Q, Q, Q, BLIND),
    "unfolded": lambda: Q.unfold(2, 3, 2),
    "unfolded, last axis": lambda: Q.unfold(-1, 4, 4),
    "smaller integers": lambda: torch.minimum(NUMBERS, NUMBERS.flip(0)) + torch.min(NUMBERS, NUMBERS.flip(0)),
    "larger integers": lambda: NUMBERS.maximum(NUMBERS.flip(0)) + NUMBERS.max(),
    "largest along an axis": lambda: torch.max(NUMBERS, 0).values,
    "adaptive largest, even": lambda: F.adaptive_max_pool2d(Q, (5, 4)),
    "adaptive largest, uneven": lambda: F.adaptive_max_pool2d(Q, (3, 5)),
    "unflatten": lambda: Q.unflatten(-1, (2, 4)),
    "einsum, matrices": lambda: torch.einsum("bhid,bhjd->bhij", Q, Q),
    "einsum, transposed, summed": lambda: torch.einsum("bhid,bhd->hb", Q, Q[:, :, 0]),
    "einsum, outer": lambda: torch.einsum("i,j->ji", torch.arange(3.0), torch.arange(4.0)),
    "einsum, one operand": lambda: torch.einsum("bhid->bdi", Q),
    "adaptive pooling, uneven": lambda: F.adaptive_avg_pool2d(Q, (3, 5)),
    "adaptive pooling, even": lambda: F.adaptive_avg_pool2d(Q, (5, 4)),
    "pooling without a batch": lambda: F.max_pool3d(Q, (1, 3, 3), stride=(2, 1, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_same_values(name: str) -> None:
    torch.manual_seed(0)
    expected = CALLS[name]()
    torch.manual_seed(0)
    with formulas(11):
        found = CALLS[name]()
    torch.testing.assert_close(found, expected)


def test_functions_are_put_back_and_new_opsets_have_their_own() -> None:
    before = (F.scaled_dot_product_attention, torch.einsum, torch.Tensor.unflatten)
    with formulas(14):
        assert F.scaled_dot_product_attention is before[0]
    with pytest.raises(ZeroDivisionError), formulas(11):
        assert F.scaled_dot_product_attention is not before[0]
        raise ZeroDivisionError
    assert (F.scaled_dot_product_attention, torch.einsum, torch.Tensor.unflatten) == before
