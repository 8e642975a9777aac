"""Mixed precision under the vendor's names."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.sim.checking import Target
from torchferry.sim import native


def _step(target: Target, scaler: Any, factor: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The weight before and after one scaled step."""
    layer = torch.nn.Linear(4, 4).to(target.type)
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    loss = layer(torch.ones(2, 4, device=target.type)).sum() * factor
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return before, layer.weight.detach()


def check_autocast_computes_in_half(target: Target) -> None:
    layer, data = torch.nn.Linear(4, 4).to(target.type), torch.ones(2, 4, device=target.type)
    with target.module.amp.autocast():
        assert layer(data).dtype is torch.float16
        with target.module.amp.autocast(False):
            assert layer(data).dtype is torch.float32
    with target.module.amp.autocast(True, torch.bfloat16, True):
        assert layer(data).dtype is torch.bfloat16
    with torch.autocast(target.vendor.autocast_device_type, dtype=torch.bfloat16):
        assert layer(data).dtype is torch.bfloat16
    assert layer(data).dtype is torch.float32


def check_autocast_decorates(target: Target) -> None:
    layer = torch.nn.Linear(4, 4).to(target.type)

    @target.module.amp.autocast()
    def forward(data: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = layer(data)
        return result

    assert forward(torch.ones(2, 4, device=target.type)).dtype is torch.float16


def check_the_module_knows_the_state_of_autocast(target: Target) -> None:
    assert target.module.get_amp_supported_dtype() == [
        getattr(torch, name) for name in target.vendor.amp_dtypes
    ]
    assert target.module.is_autocast_enabled() is False
    with target.module.amp.autocast(dtype=torch.bfloat16):
        assert target.module.is_autocast_enabled() is True
        assert target.module.get_autocast_dtype() is torch.bfloat16


def check_the_scaler_steps_and_skips(target: Target) -> None:
    scaler = target.module.amp.GradScaler(init_scale=1024.0, growth_interval=1)
    before, after = _step(target, scaler)
    torch.testing.assert_close(before.cpu() - 0.2, after.cpu())
    assert scaler.get_scale() == 2048.0
    before, after = _step(target, scaler, factor=float("inf"))
    assert torch.equal(before, after)
    assert scaler.get_scale() == 1024.0


def check_torchs_scaler_takes_the_device(target: Target) -> None:
    scaler = torch.amp.GradScaler(target.type, init_scale=4.0)
    before, after = _step(target, scaler)
    assert scaler.is_enabled()
    assert not torch.equal(before, after)


def check_a_disabled_scaler_does_nothing(target: Target) -> None:
    scaler = target.module.amp.GradScaler(enabled=False)
    loss = torch.ones(1, device=target.type)
    assert scaler.scale(loss) is loss
    assert scaler.state_dict() == {}


def check_a_static_scale_where_the_vendor_has_it(target: Target) -> None:
    if target.module.amp.GradScaler.__name__ != "SwitchableGradScaler":
        with pytest.raises(TypeError):
            target.module.amp.GradScaler(dynamic=False)
        return
    narrowed = native.narrowed_dtypes()
    scaler = target.module.amp.GradScaler(init_scale=128.0, growth_interval=1, dynamic=False)
    before, after = _step(target, scaler)
    torch.testing.assert_close(before.cpu() - 0.2, after.cpu())
    assert scaler.get_scale() == 128.0
    _, after = _step(target, scaler, factor=float("inf"))
    assert not torch.isfinite(after).all()
    assert native.narrowed_dtypes() == narrowed
    scaler.update(64.0)
    assert scaler.get_scale() == 64.0


def check_custom_functions_cast(target: Target) -> None:
    custom_fwd, custom_bwd = target.module.amp.custom_fwd, target.module.amp.custom_bwd

    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(cast_inputs=torch.float32)
        def forward(ctx: Any, data: torch.Tensor) -> torch.Tensor:
            assert data.dtype is torch.float32
            return data * 2

        @staticmethod
        @custom_bwd
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    data = torch.ones(2, device=target.type, dtype=torch.float16, requires_grad=True)
    with target.module.amp.autocast():
        Double.apply(data).sum().backward()
    assert data.grad is not None
    assert data.grad.tolist() == [2.0, 2.0]
