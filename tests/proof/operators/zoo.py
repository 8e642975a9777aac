"""Layers and optimizers that run differently on a device than on the CPU: one step of each, recorded.

python -m tests.proof.operators.zoo VENDOR FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn, optim
from torch.nn import functional
from torch.nn.utils import parametrizations

from torchferry.proof.recording import operator_recorder

from .names import ZOO
from .programs import device_of


class First(nn.Module):
    """A module of which the first result counts."""

    def __init__(self, inner: nn.Module, inputs: int = 1) -> None:
        super().__init__()
        self.inner, self.inputs = inner, inputs

    def forward(self, x: Any) -> Any:
        result = self.inner(*[x] * self.inputs)
        return result[0] if isinstance(result, tuple) else result


class Causal(nn.Module):
    """Attention that looks back only."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        keys = self.key(x)
        return functional.scaled_dot_product_attention(self.query(x), keys, keys, is_causal=True)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6))


def images(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 6, 3), *layers)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "GRU": (lambda: First(nn.GRU(6, 6, 2, dropout=0.2)), (3, 5, 6)),
    "bidirectional LSTM": (lambda: First(nn.LSTM(6, 4, bidirectional=True)), (3, 5, 6)),
    "RNN": (lambda: First(nn.RNN(6, 4)), (3, 5, 6)),
    "LSTM cell": (lambda: First(nn.LSTMCell(6, 4)), (3, 6)),
    "attention": (lambda: First(nn.MultiheadAttention(6, 2, dropout=0.1), 3), (3, 5, 6)),
    "causal attention": (Causal, (3, 2, 5, 6)),
    "decoder": (lambda: First(nn.TransformerDecoderLayer(6, 2, 12, 0.1), 2), (3, 5, 6)),
    "group norm": (lambda: images(nn.GroupNorm(2, 6), nn.SiLU(), nn.ConvTranspose2d(6, 4, 3)), (2, 4, 8, 8)),
    "instance norm": (lambda: images(nn.InstanceNorm2d(6, affine=True), nn.Hardswish()), (2, 4, 8, 8)),
    "channels last": (
        lambda: images(nn.BatchNorm2d(6), nn.MaxPool2d(2)).to(memory_format=torch.channels_last),
        (2, 4, 8, 8),
    ),
    "upsampling": (lambda: images(nn.Upsample(scale_factor=2, mode="bilinear")), (2, 4, 8, 8)),
    "one dimension": (
        lambda: nn.Sequential(nn.Conv1d(4, 6, 3, groups=2), nn.PReLU(), nn.BatchNorm1d(6), nn.Dropout1d(0.4)),
        (2, 4, 9),
    ),
    "three dimensions": (lambda: nn.Sequential(nn.Conv3d(2, 3, 3), nn.AdaptiveAvgPool3d(2)), (2, 2, 7, 7, 7)),
    "random activations": (
        lambda: nn.Sequential(nn.Linear(6, 6), nn.AlphaDropout(0.3), nn.RReLU(), nn.Softmax(-1)),
        (3, 5, 6),
    ),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(6, 6)), (3, 6)),
    "spectral norm": (lambda: parametrizations.spectral_norm(nn.Linear(6, 6)), (3, 6)),
}


def optimizer(name: str, parameters: Any) -> Any:
    """One of torch's, with the options after its name."""
    kind, *options = name.split()
    values = dict.fromkeys(options, True)
    if "nesterov" in values or "centered" in values:
        values["momentum"] = 0.9  # type: ignore[assignment]
    return getattr(optim, kind)(parameters, lr=0.01, **values)


def record_step(name: str, device: str, file: Path, number: int = 2) -> None:
    """One step of a training."""
    torch.manual_seed(0)
    build, shape = MODELS.get(name, (mlp, (4, 6)))
    model = build().to(device)
    stepper = optimizer(name if name not in MODELS else "AdamW", model.parameters())
    torch.manual_seed(1)
    source = torch.Generator().manual_seed(3)

    def closure() -> Any:
        stepper.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        return loss

    recorder = operator_recorder(file)
    for step in range(1, number + 1):
        if step == number:
            recorder.start()
        batch = torch.randn(*shape, generator=source).to(device)
        stepper.step(closure)
    recorder.stop()


def main() -> None:
    """All of them."""
    vendor, folder = sys.argv[1], Path(sys.argv[2])
    device = device_of(vendor)
    for name in ZOO:
        record_step(name, device, folder / f"{name}.operators")
    record_step("NAdam", device, folder / "NAdam.operators", number=1)


if __name__ == "__main__":
    main()
