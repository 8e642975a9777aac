"""Autocast in all spellings, and both gradient scalers."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch

from tests.sim.checking import Target


def _model() -> torch.nn.Linear:
    return torch.nn.Linear(4, 4).cuda()


def _input() -> torch.Tensor:
    return torch.ones(2, 4, device="cuda")


@contextlib.contextmanager
def _old_names() -> Any:
    """torch.cuda.amp's names are deprecated, and say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def check_spellings(target: Target) -> None:
    model = _model()
    with _old_names():
        regions: list[Any] = [
            torch.autocast("cuda"),
            torch.autocast(device_type="cuda"),
            torch.autocast(device_type="cuda", dtype=torch.float16, enabled=True),
            torch.autocast(_input().device.type),
            torch.amp.autocast("cuda", torch.float16),
            torch.amp.autocast_mode.autocast("cuda"),
            torch.cuda.amp.autocast(),
            torch.cuda.amp.autocast(True),
            torch.cuda.amp.autocast(enabled=True, dtype=torch.float16),
            torch.cuda.amp.autocast_mode.autocast(),
        ]
    for region in regions:
        with region:
            assert model(_input()).dtype == torch.float16
        assert model(_input()).dtype == torch.float32


def check_bfloat16(target: Target) -> None:
    if not torch.cuda.is_bf16_supported():
        return
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert _model()(_input()).dtype == torch.bfloat16


def check_nested_and_disabled(target: Target) -> None:
    model = _model()
    with torch.autocast("cuda"):
        with torch.autocast("cuda", enabled=False):
            assert model(_input()).dtype == torch.float32
            assert not torch.is_autocast_enabled()
        assert model(_input()).dtype == torch.float16
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert model(_input()).dtype == torch.float16
            assert torch.nn.Linear(4, 4)(torch.ones(2, 4)).dtype == torch.bfloat16
    with _old_names(), torch.cuda.amp.autocast(enabled=False):
        assert model(_input()).dtype == torch.float32


def check_as_a_decorator(target: Target) -> None:
    with _old_names():
        decorators = [torch.autocast("cuda"), torch.cuda.amp.autocast(), torch.autocast(device_type="cuda")]
    for decorate in decorators:
        function = decorate(lambda model, value: model(value))
        assert function(_model(), _input()).dtype == torch.float16


def check_state(target: Target) -> None:
    assert not torch.is_autocast_enabled() and not torch.is_autocast_enabled("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        assert torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda")
        assert torch.is_autocast_enabled(target.type) and not torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cuda") == torch.get_autocast_gpu_dtype() == torch.float16
    torch.set_autocast_enabled(True)
    assert torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", False)
    assert not torch.is_autocast_enabled()
    before = torch.get_autocast_gpu_dtype()
    torch.set_autocast_gpu_dtype(torch.bfloat16)
    assert torch.get_autocast_dtype(target.type) == torch.bfloat16
    torch.set_autocast_gpu_dtype(before)
    if hasattr(torch.amp, "is_autocast_available"):
        assert torch.amp.is_autocast_available("cuda")


def check_custom_functions(target: Target) -> None:
    with _old_names():
        pairs = [
            (
                torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32),
                torch.amp.custom_bwd(device_type="cuda"),
            ),
            (torch.cuda.amp.custom_fwd(cast_inputs=torch.float32), torch.cuda.amp.custom_bwd),
        ]
    for forward_mark, backward_mark in pairs:
        seen = []

        class Double(torch.autograd.Function):
            @staticmethod
            @forward_mark
            def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
                seen.append((value.dtype, torch.is_autocast_enabled()))  # noqa: B023
                return value * 2

            @staticmethod
            @backward_mark
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                return grad * 2

        value = torch.ones(2, device="cuda", dtype=torch.float16, requires_grad=True)
        with torch.autocast("cuda"):
            result = Double.apply(value)
        result.sum().backward()
        assert seen == [(torch.float32, False)]
        assert value.grad is not None and value.grad.tolist() == [2, 2]


def check_scalers(target: Target) -> None:
    with _old_names():
        scalers = [
            torch.amp.GradScaler("cuda", init_scale=8.0),
            torch.amp.GradScaler(device="cuda", init_scale=8.0),
            torch.amp.GradScaler(init_scale=8.0),
            torch.cuda.amp.GradScaler(init_scale=8.0),
            torch.cuda.amp.grad_scaler.GradScaler(8.0),
        ]
    for scaler in scalers:
        assert scaler.is_enabled()
        model = _model()
        before = model.weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.autocast("cuda"):
            loss = model(_input()).float().sum()
        scaler.scale(loss).backward()
        assert model.bias.grad is not None and model.bias.grad.tolist() == [16.0] * 4
        scaler.unscale_(optimizer)
        assert model.bias.grad.tolist() == [2.0] * 4
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 8.0 and not torch.equal(model.weight, before)


def check_a_scaler_skips_infinite_gradients(target: Target) -> None:
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    model = _model()
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(_input()).sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0 and torch.equal(model.weight, before)
    again = torch.amp.GradScaler("cuda")
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 4.0
