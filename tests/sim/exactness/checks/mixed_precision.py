"""Under CUDA's autocast policies the CPU computes what the device computes, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.sim.checking import Target

DTYPES = (torch.float16, torch.bfloat16)


def conv_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=4), nn.GroupNorm(2, 8), nn.SiLU(), nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Dropout(0.2), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(36, 5),
    )  # fmt: skip


class Transformer(nn.Module):
    """Words in, a score for each class out; both ways of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, words: Tensor) -> Tensor:
        x = self.encoder(self.words(words))
        x, weights = self.attention(x, x, x)
        scores: Tensor = self.head(self.norm(x).mean(1)) + weights.mean()
        return scores


class Recurrent(nn.Module):
    """An LSTM with dropout between its layers, then a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 7, 2, dropout=0.3, bidirectional=True, batch_first=True)
        self.gru, self.head = nn.GRU(14, 8, batch_first=True), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.gru(self.lstm(x)[0])[0][:, -1])
        return scores


def trained(device: str, dtype: torch.dtype, make: Callable[[], nn.Module], x: Tensor) -> list[Tensor]:
    """Losses, scaled and unscaled gradients and parameters of four steps; in the third the loss overflows."""
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**8, growth_interval=2)
    found: list[Tensor] = []
    for step in range(4):
        with torch.autocast(device, dtype=dtype):
            loss = functional.cross_entropy(
                model(x.to(device)), torch.arange(4).to(device), label_smoothing=0.1
            )
        scaler.scale(loss if step != 2 else loss * float("inf")).backward()
        found += [loss, *_gradients(model)]
        scaler.unscale_(optimizer)
        found += [*_gradients(model), nn.utils.clip_grad_norm_(model.parameters(), 0.5)]
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        found += [torch.tensor(scaler.get_scale()), *(parameter.clone() for parameter in model.parameters())]
    return [tensor.detach().cpu() for tensor in found]


def _gradients(model: nn.Module) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


def assert_same_training(target: Target, make: Callable[[], nn.Module], x: Tensor) -> None:
    for dtype in DTYPES:
        on_cpu, on_device = (trained(device, dtype, make, x) for device in ("cpu", target.type))
        for number, (expected, found) in enumerate(zip(on_cpu, on_device, strict=True)):
            same = torch.equal(found.nan_to_num(), expected.nan_to_num()) and found.dtype is expected.dtype
            assert same, f"{dtype}: number {number} differs: {found} is not {expected}"


def check_a_convolutional_net(target: Target) -> None:
    assert_same_training(target, conv_net, torch.randn(4, 3, 10, 10))


def check_a_transformer(target: Target) -> None:
    assert_same_training(target, Transformer, torch.randint(0, 20, (4, 6)))


def check_recurrent_layers(target: Target) -> None:
    assert_same_training(target, Recurrent, torch.randn(4, 5, 6))


OPERATORS: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (
    # cast to half precision, on CUDA
    lambda given, x, half: given @ x.t(),
    lambda given, x, half: functional.linear(given, half.float()),
    lambda given, x, half: torch.baddbmm(given[None], half[None, :, :4], x[None, :4]),
    # to single precision
    lambda given, x, half: given.exp(),
    lambda given, x, half: given.log(),
    lambda given, x, half: given**2,
    lambda given, x, half: functional.layer_norm(given, (6,)),
    lambda given, x, half: torch.cdist(given, given),
    lambda given, x, half: functional.softplus(given),
    lambda given, x, half: functional.mse_loss(given, half),
    # to single precision where no dtype is given
    lambda given, x, half: given.sum(),
    lambda given, x, half: given.prod(1),
    lambda given, x, half: given.cumsum(1),
    lambda given, x, half: given.softmax(1),
    lambda given, x, half: functional.log_softmax(given, 1),
    lambda given, x, half: given.sum(1, dtype=torch.float16),
    lambda given, x, half: given.norm(),
    lambda given, x, half: given.norm(1, dim=1),
    # to the widest of the arguments
    lambda given, x, half: torch.cat([x, half, given]),
    lambda given, x, half: torch.stack([given, half]),
    lambda given, x, half: torch.atan2(given, half),
    lambda given, x, half: torch.addcmul(x, given, half),
    # on the CPU alone
    lambda given, x, half: functional.avg_pool2d(given[None], 2),
    lambda given, x, half: functional.interpolate(given[None], 3),
    lambda given, x, half: torch.trace(given),
    lambda given, x, half: torch.linalg.vector_norm(given),
    lambda given, x, half: functional.grid_sample(given[None, None], torch.zeros(1, 2, 2, 2).to(given)),
    lambda given, x, half: functional.gelu(given) + functional.silu(given),
)


def _results(device: str, dtype: torch.dtype) -> Iterator[Tensor]:
    torch.manual_seed(0)
    x, half = torch.rand(4, 6).to(device) + 0.1, (torch.rand(4, 6).to(device) + 0.1).to(dtype)
    with torch.autocast(device, dtype=dtype):
        for operator in OPERATORS:
            yield operator(x, x, half)
            yield operator(half, x, half)


def check_every_policy(target: Target) -> None:
    for dtype in DTYPES:
        both = zip(_results("cpu", dtype), _results(target.type, dtype), strict=True)
        for number, (expected, found) in enumerate(both):
            assert found.dtype is expected.dtype, (
                f"operator {number // 2}: {found.dtype}, not {expected.dtype}"
            )
            assert torch.equal(found.cpu(), expected), f"operator {number // 2}"


def check_a_banned_operator_is_banned_on_both(target: Target) -> None:
    for device in ("cpu", target.type):
        half = torch.full((2,), 0.5, device=device)
        with (
            torch.autocast(device, dtype=torch.float16),
            pytest.raises(RuntimeError, match="unsafe to autocast"),
        ):
            functional.binary_cross_entropy(half, half)


def _function(device: str) -> Any:
    class Squared(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return gradient @ x.t() + x.t() @ gradient

    return Squared


def check_functions_with_custom_casts(target: Target) -> None:
    results = []
    for device in ("cpu", target.type):
        torch.manual_seed(0)
        x = torch.randn(3, 3).to(device).requires_grad_()
        with torch.autocast(device, dtype=torch.float16):
            y = _function(device).apply(x @ x)
            z = y @ x
        z.float().sum().backward()
        assert (y.dtype, z.dtype) == (torch.float32, torch.float16)
        assert x.grad is not None
        results.append((y.detach().cpu(), z.detach().cpu(), x.grad.cpu()))
    assert all(map(torch.equal, *results))
