"""A case notices what a kernel does wrong, of every sort; and lets pass what is only rounded differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.readiness.cases.faults.injecting import fault
from tests.readiness.cases.operators.calls import CALLS, INIT
from tests.readiness.cases.trying import facts_of, frame_for, made, outcome_of
from tests.sim.checking import Target
from torchferry.readiness.cases.model import CaseOutcome, CaseVerdict

# operator as it is called -> the kernel that computes it
KERNELS = {
    "aten::max.dim": "max.dim",
    "aten::max_pool2d_with_indices": "max_pool2d_with_indices",
    "aten::max_pool2d_with_indices_backward": "max_pool2d_with_indices_backward",
    "torch.nn.functional.adaptive_avg_pool2d": "_adaptive_avg_pool2d",
    "torch.nn.functional.gelu": "gelu",
    "torch.nn.functional.silu": "silu",
    "torch.softmax": "_softmax",
    "torch.nn.functional.log_softmax": "_log_softmax",
    "aten::sum.dim_IntList": "sum.dim_IntList",
    "torch.cumsum": "cumsum",
    "torch.gather": "gather",
    "torch.index_select": "index_select",
    "aten::index.Tensor": "index.Tensor",
    "torch.where": "where.self",
    "torch.nn.functional.embedding": "embedding",
    "aten::embedding_dense_backward": "embedding_dense_backward",
    "torch.sort": "sort.stable",
    "torch.topk": "topk",
    "torch.matmul": "mm",
    "torch.bmm": "bmm",
    "torch.addmm": "addmm",
    "torch.nn.functional.cross_entropy": "nll_loss_forward",
    "torch.nn.functional.smooth_l1_loss": "smooth_l1_loss",
    "torch.pow": "pow.Tensor_Scalar",
    "aten::_foreach_add.List": "_foreach_add.List",
    "torch.nn.Linear": "addmm",
}


def _with(
    target: Target, operator: str, kernel: str, spoil: Callable[[Any], Any] | None, *inputs: str
) -> CaseOutcome:
    frame = frame_for(target.vendor)
    case = made(operator, *inputs, init=INIT.get(operator, ""))
    facts = facts_of(case, frame)
    with fault(kernel, lambda *_, **__: True, spoil=spoil):
        return outcome_of(case, facts, frame)


def check_one_wrong_element(target: Target) -> None:
    unnoticed = []
    for operator, kernel in KERNELS.items():
        outcome = _with(target, operator, kernel, None, *CALLS[operator])
        if outcome.kind is not CaseVerdict.DIFFERS or outcome.aspect != "values":
            unnoticed.append(f"{operator}: {outcome}")
    assert not unnoticed, "\n".join(unnoticed)


def check_forms(target: Target) -> None:
    exp = ("torch.exp", "exp")
    as_double = _with(target, *exp, lambda result: result.double(), "3x4")
    assert (as_double.kind, as_double.aspect) == (CaseVerdict.DIFFERS, "dtype")
    shorter = _with(target, *exp, lambda result: result[:2], "3x4")
    assert (shorter.kind, shorter.aspect) == (CaseVerdict.DIFFERS, "shape")
    turned = _with(target, *exp, lambda result: result.t().contiguous().t(), "3x4")
    assert (turned.kind, turned.aspect) == (CaseVerdict.DIFFERS, "strides")


def check_where_and_how_much(target: Target) -> None:
    outcome = _with(target, "torch.exp", "exp", None, "3x4:float32:zeros")
    assert outcome.message == (
        "output: the values differ: 1 of 12 elements, max abs error 1, max rel error 1, worst at [2, 3]: "
        "device 2.0, CPU 1.0"
    )


def check_numbers_that_are_none(target: Target) -> None:
    assert (
        _with(target, "torch.exp", "exp", lambda result: result * torch.nan, "9x").kind is CaseVerdict.DIFFERS
    )
    hidden = _with(target, "torch.exp", "exp", lambda result: result.nan_to_num(1.0), "9:float32:normal+nan")
    assert hidden.kind is CaseVerdict.DIFFERS
    assert (
        _with(target, "torch.exp", "exp", lambda result: result, "9:float32:normal+nan+inf").kind
        is CaseVerdict.EQUAL
    )


def check_distribution(target: Target) -> None:
    call = ("torch.bernoulli", "bernoulli")
    assert _with(target, *call, lambda result: result, "40x40:float32:full(0.2)").kind is CaseVerdict.EQUAL
    assert (
        _with(target, *call, lambda result: 1 - result, "40x40:float32:full(0.2)").kind is CaseVerdict.DIFFERS
    )


def check_other_order_of_additions(target: Target) -> None:
    """A long sum in half precision, added up in another order: as far from the truth as the CPU's own."""

    def other(tensor: torch.Tensor, *_: object, **__: object) -> bool:
        return True

    def reordered(result: torch.Tensor) -> torch.Tensor:
        steps = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(result.numel())[: result.numel()]
        return (result.double() * (1 + steps.reshape(result.shape) * 2**-9)).to(result.dtype)

    frame = frame_for(target.vendor)
    case = made("aten::mm", "16x512:bfloat16", "512x16:bfloat16")
    facts = facts_of(case, frame)
    with fault("mm", other, spoil=reordered):
        assert outcome_of(case, facts, frame).kind is CaseVerdict.EQUAL
    with fault("mm", other, spoil=lambda result: result * 1.25):
        assert outcome_of(case, facts, frame).kind is CaseVerdict.DIFFERS


def check_single_precision_is_narrower_than_half(target: Target) -> None:
    """An error that is normal in bfloat16 is a fault in float32."""
    spoiled = _with(target, "aten::mm", "mm", lambda result: result * (1 + 2**-8), "16x32", "32x16")
    assert spoiled.kind is CaseVerdict.DIFFERS
