"""Each fault has a known smallest call that meets it; a search that begins at a larger one has to find that."""

from __future__ import annotations

import torch

from tests.readiness.cases.faults.injecting import Condition, fault
from tests.readiness.cases.trying import facts_of, frame_for, made, outcome_of
from tests.sim.checking import Target
from torchferry.readiness.cases.model import CaseVerdict
from torchferry.readiness.cases.notation import described_call
from torchferry.readiness.cases.shrinking import Smallest, shrink


def _found(
    target: Target, kernel: str, when: Condition, operator: str, *inputs: str, error: str = ""
) -> Smallest:
    frame = frame_for(target.vendor)
    case = made(operator, *inputs)
    facts = facts_of(case, frame)
    with fault(kernel, when, error):
        outcome = outcome_of(case, facts, frame)
        assert outcome.kind is (CaseVerdict.RAISES if error else CaseVerdict.DIFFERS), outcome
        return shrink(case, outcome, lambda each: outcome_of(each, facts, frame, "try"))


def _smallest(
    target: Target, kernel: str, when: Condition, operator: str, *inputs: str, error: str = ""
) -> str:
    found = _found(target, kernel, when, operator, *inputs, error=error)
    assert found.complete and found.trials < 400, found.trials
    return described_call(found.case)


def check_last_dimension_above_seven_in_int64(target: Target) -> None:
    def when(tensor: torch.Tensor, *_: object) -> bool:
        return tensor.dtype == torch.int64 and tensor.shape[-1:] > (7,)

    found = _smallest(target, "max.dim", when, "aten::max.dim", "10x20:int64", "1", "True")
    assert found == "aten::max.dim(8:int64:full(0), 0)", found


def check_number_of_elements(target: Target) -> None:
    def when(tensor: torch.Tensor) -> bool:
        return tensor.numel() > 31

    assert _smallest(target, "exp", when, "torch.exp", "8x16:float64") == "torch.exp(32:float32:full(0))"


def check_inner_dimension_of_a_product(target: Target) -> None:
    def when(left: torch.Tensor, right: torch.Tensor) -> bool:
        return left.shape[1] >= 16

    found = _smallest(target, "mm", when, "aten::mm", "9x33", "33x10")
    assert found == "aten::mm(1x16:float32:full(0), 16x1:float32:full(0))", found


def check_half_precision_only(target: Target) -> None:
    def when(left: torch.Tensor, right: torch.Tensor) -> bool:
        return left.dtype == torch.float16

    found = _smallest(target, "mul.Tensor", when, "torch.mul", "4x5:float16:normal:transposed", "4x5:float16")
    assert found == "torch.mul(scalar:float16:full(0), scalar:float16:full(0))", found


def check_strides(target: Target) -> None:
    def when(left: torch.Tensor, right: torch.Tensor, **_: object) -> bool:
        return not left.is_contiguous()

    found = _smallest(
        target, "add.Tensor", when, "aten::add.Tensor", "6x7:float32:normal:transposed", "6x7", "alpha=2"
    )
    assert found == "aten::add.Tensor(2x2:float32:full(0):strides(1,2), scalar:float32:full(0))", found


def check_third_tensor_of_a_list(target: Target) -> None:
    def when(left: list[torch.Tensor], right: list[torch.Tensor], **_: object) -> bool:
        return len(left) > 2

    lists = ["list(4:float32, 5:float32, 2x3, 6:float32, 7:float32)"] * 2
    found = _smallest(target, "_foreach_add.List", when, "aten::_foreach_add.List", *lists)
    tensors = f"list({', '.join(['scalar:float32:full(0)'] * 3)})"
    assert found == f"aten::_foreach_add.List({tensors}, {tensors})", found


def check_value_that_is_no_number(target: Target) -> None:
    def when(tensor: torch.Tensor) -> bool:
        return bool(tensor.isnan().any())

    frame = frame_for(target.vendor)
    case = made("torch.sin", "5x6:float32:normal+inf+nan")
    facts = facts_of(case, frame)
    with fault("sin", when, spoil=lambda result: result.nan_to_num(0.5)):
        outcome = outcome_of(case, facts, frame)
        found = shrink(case, outcome, lambda each: outcome_of(each, facts, frame, "try"))
    assert described_call(found.case) == "torch.sin(scalar:float32:full(0)+nan)"


def check_argument_that_raises(target: Target) -> None:
    def when(tensor: torch.Tensor, k: int, *_: object) -> bool:
        return k > 4

    message = "topk: k must be at most 4"
    found = _smallest(target, "topk", when, "aten::topk", "6x17", "9", "1", "True", "True", error=message)
    assert found == "aten::topk(5:float32:full(0), 5)", found


def check_size_that_is_a_multiple(target: Target) -> None:
    def when(tensor: torch.Tensor) -> bool:
        return tensor.shape[-1:] != () and tensor.shape[-1] % 8 == 0

    assert _smallest(target, "cos", when, "torch.cos", "5x24") == "torch.cos(8:float32:full(0))"


def check_optional_argument(target: Target) -> None:
    def when(tensor: torch.Tensor, low: object = None, high: object = None) -> bool:
        return high is not None

    found = _smallest(target, "clamp", when, "aten::clamp", "4x5:int32", "min=-2", "max=3")
    assert found == "aten::clamp(scalar:int64:full(0), max=0)", found


def check_number_of_indices(target: Target) -> None:
    def when(tensor: torch.Tensor, dim: int, index: torch.Tensor) -> bool:
        return index.numel() >= 4

    found = _smallest(target, "index_select", when, "aten::index_select", "7x9", "1", "8:int64")
    assert found == "aten::index_select(1:float32:full(0), 0, 4:int64:full(0))", found


def check_gradient_alone(target: Target) -> None:
    def when(gradient: torch.Tensor, result: torch.Tensor) -> bool:
        return gradient.numel() > 9

    found = _found(target, "tanh_backward", when, "torch.tanh", "6x7")
    assert found.outcome.check == "test_backward"
    assert described_call(found.case) == "torch.tanh(10:float32:full(0))"
