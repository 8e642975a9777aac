"""Phase, module and line of an operator, where a program does not simply call its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.model import Phase, Use


def captured(step: Callable[[], object]) -> tuple[Use, ...]:
    mode = CapturingMode()
    with mode.switched_on():
        step()
    return mode.uses()


def sites(uses: tuple[Use, ...], operator: str) -> set[tuple[Phase, str]]:
    return {(use.site.phase, use.site.module) for use in uses if use.operator == operator}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(x))


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self._use_reentrant = use_reentrant

    def forward(self, x: Tensor) -> Any:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self._use_reentrant)
        return x


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_what_a_checkpoint_computes_again_is_of_its_module(use_reentrant: bool) -> None:
    model, x = Checkpointed(use_reentrant), torch.ones(2, 4, requires_grad=True)
    uses = captured(lambda: model(x).sum().backward())
    both = {(phase, f"blocks.{number}") for phase in (Phase.FORWARD, Phase.BACKWARD) for number in range(2)}
    assert sites(uses, "aten::tanh") == both
    assert sites(uses, "aten::addmm") == {(phase, f"{module}.linear") for phase, module in both}
    assert sites(uses, "aten::tanh_backward") == {site for site in both if site[0] is Phase.BACKWARD}


def test_a_model_without_modules_goes_forward_again_after_its_backward_pass() -> None:
    weight, x = torch.ones(3, 2, requires_grad=True), torch.ones(4, 3)

    def train() -> None:
        for _ in range(2):
            torch.tanh(x @ weight).sum().backward()
            with torch.no_grad():
                weight.sub_(0.1)

    uses = captured(train)
    assert {phase for phase, _ in sites(uses, "aten::tanh")} == {Phase.FORWARD}
    assert {phase for phase, _ in sites(uses, "aten::sub_.Tensor")} == {Phase.OPTIMIZER}


def test_the_loss_of_a_closure_is_of_the_forward_pass() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = torch.tanh(model(torch.ones(4, 3))).sum()
        loss.backward()
        return loss

    uses = captured(lambda: optimizer.step(closure))
    assert sites(uses, "aten::tanh") == {(Phase.FORWARD, "")}
    assert sites(uses, "aten::cat") == {(Phase.OPTIMIZER, "")}


def test_a_mode_of_the_program_is_not_where_it_calls_operators() -> None:
    class Passing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    def step() -> None:
        with Passing():  # type: ignore[no-untyped-call]
            torch.ones(2).cosh()

    code = step.__code__
    lines = {line for _, _, line in code.co_lines()}
    (use,) = (use for use in captured(step) if use.operator == "aten::cosh")
    assert int(use.site.place.rpartition(":")[2]) in lines
