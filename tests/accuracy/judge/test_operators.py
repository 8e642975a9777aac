"""Which class an operator belongs to."""

from __future__ import annotations

import pytest

from torchferry.accuracy.judge.margins import margins_of

CLASSES = {
    "aten::relu": "exact", "aten::_to_copy": "exact", "aten::max_pool2d_with_indices": "exact",
    "aten::add.Tensor": "rounded", "aten::gelu": "approximated_near_zero", "aten::exp": "approximated",
    "aten::expand": "exact", "aten::sum.dim_IntList": "reduction", "aten::_softmax": "normalisation",
    "aten::max_pool2d_with_indices_backward": "accumulated_exact", "aten::mm": "product",
    "aten::convolution_backward": "convolution", "aten::_fused_adamw_": "optimizer", "aten::eq.Scalar": "exact",
    "aten::native_batch_norm_backward": "batch_norm_backward", "aten::leaky_relu": "rounded",
    "aten::_scaled_dot_product_flash_attention": "composed", "aten::lerp_.Scalar": "compound",
    "vendor::whatever": "general",
}  # fmt: skip


@pytest.mark.parametrize("operator", CLASSES)
def test_an_operator_has_a_class(operator: str) -> None:
    assert margins_of(operator).name == CLASSES[operator]


def test_a_factor_and_an_accumulation_make_another_class() -> None:
    assert margins_of("aten::add.Tensor", "alpha").name == "compound"
    assert margins_of("aten::index_put_", "accumulate").name == "accumulated_exact"
