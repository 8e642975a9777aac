"""LAMB, AdamP, RMSprop of TensorFlow, BERT's Adam and LARS against their definitions, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import Optimizer

from tests.sim.shims.nets import parameters, set_gradients
from torchferry.sim.shims.optim import apex_style, npu, torch_style

Array = Any
STEPS = 5
# one definition: (weights, gradients, memory, step from 1) -> the new weights
Rule = Callable[[list[Array], list[Array], dict[str, Any], int], list[Array]]


def run(optimizer_of: Callable[..., Optimizer], rule: Rule, scale: float = 1.0) -> None:
    """Let an optimizer and a definition take the same steps, and compare after each."""
    params = parameters(scale)
    optimizer = optimizer_of(params)
    expected = [param.detach().double().numpy().copy() for param in params]
    memory: dict[str, Any] = {}
    for step in range(1, STEPS + 1):
        set_gradients(params, step)
        gradients = [param.grad.double().numpy().copy() for param in params if param.grad is not None]
        optimizer.step()
        expected = rule(expected, gradients, memory, step)
        for param, array in zip(params, expected, strict=True):
            np.testing.assert_allclose(param.detach().numpy(), array, rtol=2e-5, atol=2e-6)


def remembered(memory: dict[str, Any], name: str, index: int, start: Array) -> Array:
    return memory.setdefault((name, index), start)


def norm(values: Array) -> float:
    return float(np.sqrt((values**2).sum()))


def adam_moments(memory: dict[str, Any], index: int, gradient: Array, first: float, second: float) -> Any:
    zero = np.zeros_like(gradient)
    mean = first * remembered(memory, "m", index, zero) + (1 - first) * gradient
    square = second * remembered(memory, "v", index, zero) + (1 - second) * gradient**2
    memory["m", index], memory["v", index] = mean, square
    return mean, square


@pytest.mark.parametrize("adam", [False, True])
@pytest.mark.parametrize("use_global_grad_norm", [False, True])
def test_npu_lamb(adam: bool, use_global_grad_norm: bool) -> None:
    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], _: int) -> list[Array]:
        together = math.sqrt(sum(norm(gradient) ** 2 for gradient in gradients))
        shrink = together if use_global_grad_norm and together > 1 else 1.0
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            mean, square = adam_moments(memory, index, gradient / shrink, 0.9, 0.999)
            update = mean / (np.sqrt(square) + 1e-6) + 0.05 * weight
            length, size = min(norm(weight), 10.0), norm(update)
            trust = 1.0 if adam or not length or not size else length / size
            result.append(weight - 0.02 * trust * update)
        return result

    run(
        lambda params: npu.NpuFusedLamb(
            params, lr=0.02, weight_decay=0.05, adam=adam, use_global_grad_norm=use_global_grad_norm
        ),
        rule,
        scale=3.0,  # some norms above ten, some below
    )


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("lr_in_momentum", [False, True])
def test_npu_rmsprop_tf(momentum: float, centered: bool, decoupled: bool, lr_in_momentum: bool) -> None:
    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], _: int) -> list[Array]:
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            if decoupled:
                weight = weight * (1 - 0.1)
            else:
                gradient = gradient + 0.1 * weight
            square = remembered(memory, "v", index, np.ones_like(weight))
            square = memory["v", index] = 0.9 * square + 0.1 * gradient**2
            mean = remembered(memory, "m", index, np.zeros_like(weight))
            mean = memory["m", index] = 0.9 * mean + 0.1 * gradient
            root = np.sqrt(square - (mean**2 if centered else 0) + 1e-10)
            buffer = remembered(memory, "b", index, np.zeros_like(weight))
            inside = 0.01 if lr_in_momentum or not momentum else 1.0
            buffer = memory["b", index] = momentum * buffer + inside * gradient / root
            result.append(weight - buffer * (0.01 / inside))
        return result

    def make(params: Any) -> Optimizer:
        settings = {"momentum": momentum, "centered": centered, "weight_decay": 0.1}
        return npu.NpuFusedRMSpropTF(
            params, decoupled_decay=decoupled, lr_in_momentum=lr_in_momentum, **settings
        )

    run(make, rule)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("delta", [0.1, 1.2, 5.0])  # by channel, as a whole, or not at all
def test_npu_adamp(nesterov: bool, delta: float) -> None:
    def projected(weight: Array, gradient: Array, update: Array) -> tuple[Array, float]:
        for rows in (weight.shape[0], 1):
            w, g, u = (array.reshape(rows, -1) for array in (weight, gradient, update))
            lengths = np.sqrt((w**2).sum(1)) + 1e-8
            cosine = np.abs((w * g).sum(1)) / lengths / (np.sqrt((g**2).sum(1)) + 1e-8)
            if cosine.max() < delta / math.sqrt(w.shape[1]):
                unit = w / lengths[:, None]
                return (u - unit * (unit * u).sum(1)[:, None]).reshape(weight.shape), 0.1
        return update, 1.0

    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], step: int) -> list[Array]:
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            mean, square = adam_moments(memory, index, gradient, 0.9, 0.999)
            divisor = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            ahead = 0.9 * mean + 0.1 * gradient if nesterov else mean
            update, ratio = ahead / divisor, 1.0
            if weight.ndim > 1:
                update, ratio = projected(weight, gradient, update)
            result.append(weight * (1 - 0.01 * 0.2 * ratio) - 0.01 / (1 - 0.9**step) * update)
        return result

    run(
        lambda params: npu.NpuFusedAdamP(params, lr=0.01, weight_decay=0.2, delta=delta, nesterov=nesterov),
        rule,
    )


@pytest.mark.parametrize("schedule", ["warmup_linear", "warmup_cosine", "warmup_constant", "warmup_poly"])
@pytest.mark.parametrize("max_grad_norm", [1.0, -1])
def test_npu_bert_adam(schedule: str, max_grad_norm: float) -> None:
    total, warmup = 10, 0.25

    def factor(done: float) -> float:
        if done < warmup:
            return done / warmup
        return {
            "warmup_linear": max((done - 1) / (warmup - 1), 0.0),
            "warmup_cosine": 0.5 * (1 + math.cos(math.pi * done)),
            "warmup_constant": 1.0,
            "warmup_poly": (1 - done) ** 0.5,
        }[schedule]

    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], step: int) -> list[Array]:
        together = math.sqrt(sum(norm(gradient) ** 2 for gradient in gradients))
        shrink = min(1.0, max_grad_norm / (together + 1e-6)) if max_grad_norm > 0 else 1.0
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            mean, square = adam_moments(memory, index, gradient * shrink, 0.9, 0.999)
            update = mean / (np.sqrt(square) + 1e-6) + 0.01 * weight
            result.append(weight - 0.02 * factor((step - 1) / total) * update)
        return result

    def make(params: Any) -> Optimizer:
        settings = {"warmup": warmup, "t_total": total, "schedule": schedule}
        return npu.NpuFusedBertAdam(params, lr=0.02, max_grad_norm=max_grad_norm, **settings)  # type: ignore[arg-type]

    run(make, rule)


@pytest.mark.parametrize("adam_w_mode", [True, False])
@pytest.mark.parametrize("grad_averaging", [True, False])
@pytest.mark.parametrize(("weight_decay", "use_nvlamb"), [(0.05, False), (0.0, True), (0.0, False)])
def test_apex_lamb(adam_w_mode: bool, grad_averaging: bool, weight_decay: float, use_nvlamb: bool) -> None:
    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], step: int) -> list[Array]:
        together = math.sqrt(sum(norm(gradient) ** 2 for gradient in gradients))
        shrink = max(together / 1.0, 1.0)
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            gradient = gradient / shrink + (0 if adam_w_mode else weight_decay * weight)
            zero = np.zeros_like(weight)
            mean = 0.9 * remembered(memory, "m", index, zero) + (0.1 if grad_averaging else 1.0) * gradient
            square = 0.999 * remembered(memory, "v", index, zero) + 0.001 * gradient**2
            memory["m", index], memory["v", index] = mean, square
            update = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-6)
            update = update + (weight_decay * weight if adam_w_mode else 0)
            adapts = (use_nvlamb or weight_decay) and norm(weight) and norm(update)
            result.append(weight - 0.02 * (norm(weight) / norm(update) if adapts else 1.0) * update)
        return result

    def make(params: Any) -> Optimizer:
        return apex_style.FusedLAMB(
            params,
            lr=0.02,
            weight_decay=weight_decay,
            adam_w_mode=adam_w_mode,
            grad_averaging=grad_averaging,
            use_nvlamb=use_nvlamb,
        )

    run(make, rule)


def test_apex_adam_without_bias_correction() -> None:
    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], _: int) -> list[Array]:
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            mean, square = adam_moments(memory, index, gradient, 0.9, 0.999)
            result.append(weight - 0.01 * (mean / (np.sqrt(square) + 1e-8) + 0.1 * weight))
        return result

    run(lambda params: apex_style.FusedAdam(params, lr=0.01, bias_correction=False, weight_decay=0.1), rule)


def test_apex_sgd_decays_after_momentum() -> None:
    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], step: int) -> list[Array]:
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            earlier = memory.get(("b", index))
            buffer = memory["b", index] = gradient if earlier is None else 0.9 * earlier + gradient
            result.append(weight - 0.1 * (buffer + 0.2 * weight))
        return result

    run(
        lambda params: apex_style.FusedSGD(
            params, lr=0.1, momentum=0.9, weight_decay=0.2, wd_after_momentum=True
        ),
        rule,
    )


def test_lars() -> None:
    def rule(weights: list[Array], gradients: list[Array], memory: dict[str, Any], _: int) -> list[Array]:
        result = []
        for index, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            rate = 0.5 * 1e-3 * norm(weight) / (norm(gradient) + 0.1 * norm(weight) + 1e-6)
            gradient = gradient + 0.1 * weight
            earlier = memory.get(("b", index))
            buffer = memory["b", index] = gradient if earlier is None else 0.9 * earlier + gradient
            result.append(weight - rate * buffer)
        return result

    run(
        lambda params: torch_style.FusedIntelLARS(
            params, lr=0.5, momentum=0.9, weight_decay=0.1, epsilon=1e-6
        ),
        rule,
    )


def test_half_weights_of_apex_adam_keep_single_averages() -> None:
    param = torch.nn.Parameter(torch.randn(7, dtype=torch.float16))
    param.grad = torch.full_like(param, 1e-4)
    optimizer = apex_style.FusedAdam([param], lr=0.1)
    optimizer.step()
    assert param.dtype == torch.float16
    assert optimizer.state[param]["exp_avg_sq"].dtype == torch.float32
    assert optimizer.state[param]["exp_avg_sq"].min() > 0  # 1e-11, nothing in float16


def test_lamb_for_amp_steps_a_wide_copy_of_half_weights() -> None:
    param = torch.nn.Parameter(torch.ones(4, dtype=torch.float16))
    wide = torch.nn.Parameter(torch.ones(4))
    settings = {"lr": 1e-4, "weight_decay": 0.01}
    half, single = apex_style.FusedLAMBAMP([param], **settings), apex_style.FusedLAMB([wide], **settings)
    for _ in range(20):
        param.grad, wide.grad = torch.ones_like(param), torch.ones_like(wide)
        half.step()
        single.step()
    assert torch.equal(param.float(), wide.half().float())
    assert param.detach()[0].item() != 1.0  # each step alone is less than float16 can hold


def test_apex_optimizers_drop_gradients_or_clear_them() -> None:
    param = torch.nn.Parameter(torch.ones(2))
    for optimizer, dropped in (
        (apex_style.FusedAdam([param]), True),
        (apex_style.FusedAdam([param], set_grad_none=False), False),
        (apex_style.FusedSGD([param], lr=0.1), False),
    ):
        param.grad = torch.ones(2)
        optimizer.zero_grad()
        assert (param.grad is None) is dropped
