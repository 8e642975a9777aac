"""What the CPU computes, for every operator that PyTorch has samples for, is called normal in all dtypes."""

from __future__ import annotations

import contextlib
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from torchferry.accuracy.compare.model import Verdict
from torchferry.accuracy.replay.judging import Judge
from torchferry.accuracy.replay.margins import margins_of

from .recorded import record, seeded

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


def samples_of(dtype: torch.dtype) -> list[tuple[Any, Any]]:
    """Operators and what they are called with: a few samples of each."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = []
    for operator in op_db:
        if dtype in operator.supported_dtypes("cpu") and "conj" not in operator.name:
            samples = operator.sample_inputs("cpu", dtype, requires_grad=operator.supports_autograd)
            found += [(operator, sample) for sample in islice(samples, 4)]
    return found


def call_all(samples: list[tuple[Any, Any]]) -> None:
    """Forward and backward; what PyTorch refuses is left out."""
    for operator, sample in samples:
        with contextlib.suppress(Exception):
            _call(operator, sample)


def _call(operator: Any, sample: Any) -> None:
    given = [
        each
        for each in tree_leaves((sample.input, sample.args, sample.kwargs))
        if isinstance(each, torch.Tensor)
    ]
    results = tree_leaves(operator(sample.input, *sample.args, **sample.kwargs))
    differentiable = [
        each
        for each in results
        if isinstance(each, torch.Tensor) and each.requires_grad and each.is_floating_point()
    ]
    if differentiable:
        total = torch.stack([each.sum() for each in differentiable]).sum()
        torch.autograd.grad(total, [each for each in given if each.requires_grad], allow_unused=True)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_no_false_alarm_in_any_operator(dtype: torch.dtype, tmp_path: Path) -> None:
    with warnings.catch_warnings(), seeded():
        warnings.simplefilter("ignore")
        samples = samples_of(dtype)
        with record(tmp_path / "a.h5", lambda: call_all(samples)) as recorded:
            judge = Judge(recorded, None)
            found = [(call.operator, judge.judge(call, None, (), ())) for call in recorded.calls]
    assert len({operator for operator, _ in found}) > 300, recorded.header.notes
    alarms = [
        each for each in found if each[1].verdict in (Verdict.FAULT, Verdict.SUSPICIOUS, Verdict.REDUCED)
    ]
    assert alarms == []
    assert sum(judgement.verdict is Verdict.UNKNOWN for _, judgement in found) < len(found) / 100
