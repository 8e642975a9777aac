"""torch.jit and torch.compile with CUDA's words inside."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from tests.sim.checking import Target


def _asks_for_cuda(value: torch.Tensor) -> torch.Tensor:
    if value.device.type == "cuda":
        value = value + torch.zeros(2, device="cuda")
    if value.is_cuda and value.device.type != "cpu":
        value = value + torch.ones(2).to("cuda") + torch.ones(2, device=value.device) + torch.ones(2).cuda()
    place = torch.device("cuda:0")
    return value + torch.full((2,), 1.0, device=place) + torch.zeros_like(value, device="cuda")


def check_whole_graphs(target: Target) -> None:
    value = torch.ones(2, device="cuda")
    for backend in ("eager", "aot_eager"):
        compiled = torch.compile(_asks_for_cuda, backend=backend, fullgraph=True)
        assert torch.equal(compiled(value), _asks_for_cuda(value))
        assert compiled(value).tolist() == [5, 5]
        torch._dynamo.reset()


def check_default_compiler(target: Target) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compiled = torch.compile(mode="max-autotune")(lambda value: value * 2)
        torch.compile(torch.nn.Linear(2, 2).cuda())(torch.ones(1, 2, device="cuda"))
    assert compiled(torch.ones(2, device="cuda")).tolist() == [2, 2]
    ours = [str(one.message) for one in said if "inductor" in str(one.message)]
    assert len(ours) == 1 and target.type in ours[0]
    torch._dynamo.reset()


def check_autocast_in_a_graph(target: Target) -> None:
    model = torch.nn.Linear(3, 3).cuda()

    def step(value: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.float16):
            return model(value)

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    result = compiled(torch.ones(2, 3, device="cuda"))
    assert result.dtype == torch.float16
    result.float().sum().backward()
    assert model.weight.grad is not None
    torch._dynamo.reset()


def _scripted(value: torch.Tensor, place: torch.device) -> torch.Tensor:
    return value + torch.zeros([2], device=place) + torch.ones_like(value)


def check_scripts(target: Target) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        script: Any = torch.jit.script(_scripted)
    assert script(torch.ones(2, device="cuda"), torch.device("cuda")).tolist() == [2, 2]
    is_eager = bool(target.vendor.jit_script)
    assert isinstance(script, torch.jit.ScriptFunction) is not is_eager
    assert any(target.vendor.company in str(one.message) for one in said) is is_eager


def check_derivatives_that_pytorch_scripts(target: Target) -> None:
    """Forward-mode derivatives are formulas that PyTorch itself scripts, whatever scripts of the user do."""
    second = torch.func.hessian(lambda x: (x**3).sum())(torch.ones(2, device="cuda"))
    assert second.tolist() == [[6, 0], [0, 6]]


def check_optimizers_that_pytorch_scripts(target: Target) -> None:
    """Their classes are scripted when they are imported, with names of their own modules."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    assert issubclass(ZeroRedundancyOptimizer, torch.optim.Optimizer)


class Scaled(torch.nn.Module):
    """A module as libraries script it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    @torch.jit.export
    def twice(self, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return self.twice(value) * self.scale


def check_scripted_modules(target: Target) -> None:
    module = torch.jit.script(Scaled()).cuda()
    assert module(torch.ones(2, device="cuda")).tolist() == [2, 2]
    assert next(module.parameters()).is_cuda
    traced = torch.jit.trace(Scaled().cuda(), torch.ones(2, device="cuda"))
    assert traced(torch.ones(3, device="cuda")).tolist() == [2, 2, 2]

    @torch.jit.ignore
    def ignored(value: int) -> int:
        return value

    @torch.jit.unused
    def unused(value: int) -> int:
        return value

    assert ignored(1) == unused(1) == 1
