"""Which module a call belongs to: paths in the main model, names before those of others, wrappers left out."""

from __future__ import annotations

import torch
from torch import nn

from torchferry.observe import where
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.model import ModuleInfo, Phase


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        answer: torch.Tensor = self.inner(rows).exp() + rows
        return answer


def captured(*models: nn.Module) -> CapturingMode:
    mode = CapturingMode()
    with mode.switched_on():
        rows = torch.ones(2, 4)
        for model in models:
            rows = model(rows)
        torch.autograd.backward(rows.cos().sum())
    return mode


def modules_of(mode: CapturingMode, operator: str) -> list[tuple[Phase, str]]:
    return [(use.site.phase, use.site.module) for use in mode.uses() if use.operator == operator]


def test_one_model() -> None:
    mode = captured(Residual())
    assert modules_of(mode, "aten::relu") == [(Phase.FORWARD, "inner.1")]
    assert modules_of(mode, "aten::threshold_backward") == [(Phase.BACKWARD, "inner.1")]
    assert modules_of(mode, "aten::exp") == [(Phase.FORWARD, "")]  # the model itself
    assert modules_of(mode, "aten::sin") == [(Phase.BACKWARD, "")]  # outside of every module
    assert mode.modules() == (
        ModuleInfo("", "Residual"),
        ModuleInfo("inner", "Sequential"),
        ModuleInfo("inner.0", "Linear"),
        ModuleInfo("inner.1", "ReLU"),
    )


def test_the_largest_model_has_plain_paths() -> None:
    mode = captured(nn.Sequential(nn.Tanh()), Residual(), nn.Sequential(nn.Sigmoid()))
    assert modules_of(mode, "aten::tanh") == [(Phase.FORWARD, "Sequential.0")]
    assert modules_of(mode, "aten::relu") == [(Phase.FORWARD, "inner.1")]
    assert modules_of(mode, "aten::sigmoid") == [(Phase.FORWARD, "Sequential#2.0")]
    assert ModuleInfo("Sequential#2", "Sequential") in mode.modules()


def test_a_model_that_is_called_twice_is_one() -> None:
    model = Residual()
    mode = captured(model, model)
    assert modules_of(mode, "aten::relu") == [(Phase.FORWARD, "inner.1")]
    assert len(mode.modules()) == 4


def test_a_wrapper_is_left_out() -> None:
    mode = captured(nn.DataParallel(Residual()))
    assert modules_of(mode, "aten::relu") == [(Phase.FORWARD, "inner.1")]
    assert modules_of(mode, "aten::exp") == [(Phase.FORWARD, "")]


def test_nodes_that_are_long_gone_are_forgotten() -> None:
    before, where._MOST_NODES = where._MOST_NODES, 10
    try:
        mode = CapturingMode()
        with mode.switched_on():
            weight = torch.ones(3, requires_grad=True)
            for _ in range(50):
                torch.autograd.backward(weight.sin().sum())
    finally:
        where._MOST_NODES = before
    assert len(mode.where._made) <= 10
    assert {use.site.place.rpartition("/")[2][:15] for use in mode.uses() if use.operator == "aten::cos"} == {
        "test_modules.py"
    }
