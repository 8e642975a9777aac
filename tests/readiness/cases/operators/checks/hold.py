"""Every case holds: the device's results are those of the CPU, or it says that it lacks the operator."""

from __future__ import annotations

from tests.readiness.cases.operators.calls import CALLS, INIT
from tests.readiness.cases.trying import facts_of, frame_for, made, outcome_of
from tests.sim.checking import Target
from torchferry.readiness.cases.model import CaseVerdict
from torchferry.sim import native


def check_every_operator(target: Target) -> None:
    frame = frame_for(target.vendor)
    failed = []
    for operator, inputs in CALLS.items():
        case = made(operator, *inputs, init=INIT.get(operator, ""))
        outcome = outcome_of(case, facts_of(case, frame), frame)
        is_lacking = outcome.kind is CaseVerdict.RAISES and _lacks_one(outcome.message)
        if outcome.kind not in (CaseVerdict.EQUAL, CaseVerdict.FALLS_BACK) and not is_lacking:
            failed.append(f"{operator}: {outcome}")
    assert not failed, "\n".join(failed)


def check_facts(target: Target) -> None:
    frame = frame_for(target.vendor)
    gelu = facts_of(made("torch.nn.functional.gelu", "4x4"), frame)
    assert gelu.differentiable and not gelu.random
    drawn = facts_of(made("torch.nn.functional.dropout", "40x40", "0.3"), frame)
    assert drawn.random
    attention = made("torch.nn.functional.scaled_dot_product_attention", *["1x2x6x8"] * 3)
    assert not facts_of(attention, frame).random  # its kernel could draw, but does not
    assert not facts_of(made("aten::max.dim", "4x4:int64", "1"), frame).differentiable


def _lacks_one(message: str) -> bool:
    """Whether the error names an operator that the vendor's table does not have."""
    lacking = [use.name for use in native.operator_uses() if use.verdict is native.OperatorVerdict.RAISES]
    return any(name in message for name in lacking)
