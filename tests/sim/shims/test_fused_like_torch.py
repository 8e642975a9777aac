"""Fused optimizers that have a counterpart in torch: after every step the weights are the same, bit for bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from tests.sim.shims.nets import parameters, set_gradients
from torchferry.sim.shims.optim import apex_style, npu, torch_style

STEPS = 6
Make = Callable[..., Optimizer]

PAIRS: list[tuple[str, Make, Make, dict[str, Any]]] = [
    ("sgd", npu.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1}),
    ("sgd-momentum", npu.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("sgd-dampening", npu.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("sgd-nesterov", npu.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("adam", npu.NpuFusedAdam, torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    ("adam-amsgrad", npu.NpuFusedAdam, torch.optim.Adam, {"amsgrad": True}),
    ("adamw", npu.NpuFusedAdamW, torch.optim.AdamW, {"lr": 0.01}),
    ("adamw-amsgrad", npu.NpuFusedAdamW, torch.optim.AdamW, {"amsgrad": True, "weight_decay": 0.3}),
    ("adadelta", npu.NpuFusedAdadelta, torch.optim.Adadelta, {"rho": 0.8, "weight_decay": 0.1}),
    ("rmsprop", npu.NpuFusedRMSprop, torch.optim.RMSprop, {"weight_decay": 0.1}),
    ("rmsprop-centered", npu.NpuFusedRMSprop, torch.optim.RMSprop, {"momentum": 0.9, "centered": True}),
    ("torch-style-adam", torch_style.FusedAdam, torch.optim.Adam, {"weight_decay": 0.1}),
    ("torch-style-adam-maximize", torch_style.FusedAdam, torch.optim.Adam, {"maximize": True}),
    ("torch-style-adamw", torch_style.FusedAdamW, torch.optim.AdamW, {"lr": 0.01}),
    ("torch-style-sgd", torch_style.FusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    ("apex-adamw", apex_style.FusedAdam, torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    ("apex-sgd", apex_style.FusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    (
        "apex-sgd-nesterov",
        apex_style.FusedSGD,
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    ),
]
NPU_PAIRS = [pair for pair in PAIRS if issubclass(pair[1], npu.CombinedOptimizer)]  # type: ignore[arg-type]


def step_both(fused: Optimizer, plain: Optimizer, params: list[Any], step: int) -> None:
    ours, theirs = params
    set_gradients(ours, step)
    set_gradients(theirs, step)
    fused.step()
    plain.step()


def assert_equal(ours: list[nn.Parameter], theirs: list[nn.Parameter]) -> None:
    for left, right in zip(ours, theirs, strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize(("fused", "plain", "settings"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_weights_are_torchs(fused: Make, plain: Make, settings: dict[str, Any]) -> None:
    ours, theirs = parameters(), parameters()
    optimizers = fused(ours, **settings), plain(theirs, **settings)
    for step in range(STEPS):
        step_both(*optimizers, [ours, theirs], step)
        assert_equal(ours, theirs)


@pytest.mark.parametrize(("fused", "plain", "settings"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_groups_have_their_own_settings(fused: Make, plain: Make, settings: dict[str, Any]) -> None:
    ours, theirs = parameters(), parameters()
    optimizers = []
    for make, params in ((fused, ours), (plain, theirs)):
        groups = [{"params": params[:2], "lr": 0.003, "weight_decay": 0.2}, {"params": params[2:]}]
        optimizers.append(make(groups, **settings))
    for step in range(STEPS):
        step_both(optimizers[0], optimizers[1], [ours, theirs], step)
    assert_equal(ours, theirs)


@pytest.mark.parametrize(
    ("fused", "plain", "settings"), [p[1:] for p in NPU_PAIRS], ids=[p[0] for p in NPU_PAIRS]
)
def test_checkpoints_go_both_ways(fused: Make, plain: Make, settings: dict[str, Any]) -> None:
    ours, theirs = parameters(), parameters()
    first, second = fused(ours, **settings), plain(theirs, **settings)
    for step in range(2):
        step_both(first, second, [ours, theirs], step)
    swapped = fused(theirs, **settings), plain(ours, **settings)
    swapped[0].load_state_dict(second.state_dict())
    swapped[1].load_state_dict(first.state_dict())
    for step in range(2, 5):
        step_both(*swapped, [theirs, ours], step)
    assert_equal(ours, theirs)


def test_adam_mode_of_apex_is_adam() -> None:
    ours, theirs = parameters(), parameters()
    fused = apex_style.FusedAdam(ours, lr=0.01, weight_decay=0.1, adam_w_mode=False)
    plain = torch.optim.Adam(theirs, lr=0.01, weight_decay=0.1)
    for step in range(STEPS):
        step_both(fused, plain, [ours, theirs], step)
        assert_equal(ours, theirs)


def test_a_fused_optimizer_survives_pickling() -> None:
    params = parameters()
    optimizer = npu.NpuFusedAdam(params)
    set_gradients(params, 0)
    optimizer.step()
    again = pickle.loads(pickle.dumps(optimizer))
    again.zero_grad()
    assert again.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    assert again.get_combined_grads()[1] is None


def test_a_rate_is_required() -> None:
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        npu.NpuFusedSGD(parameters())
    groups = [{"params": parameters(), "lr": 0.5}]
    assert npu.NpuFusedSGD(groups).param_groups[0]["lr"] == 0.5
