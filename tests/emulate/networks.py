"""Trains small networks on the vendor's plugin and on the CPU, and prints how they differ as JSON.

Run by test_networks.py in a process with the plugin: one process for all, starting it costs seconds.
"""

from __future__ import annotations

import copy
import json
import sys
import traceback
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

STEPS = 3
Batch = tuple[Tensor, Tensor]


class Convolutional(nn.Module):
    """An image classifier as they are taught."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.classifier = nn.Linear(8 * 8 * 8, 10)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of ten classes."""
        logits: Tensor = self.classifier(self.features(images).flatten(1))
        return logits


class Attentive(nn.Module):
    """An encoder of one layer over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.norm = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.rest = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.classifier = nn.Linear(32, 10)

    def forward(self, words: Tensor) -> Tensor:
        """The logits of ten classes."""
        state = self.words(words)
        normal = self.norm(state)
        state = state + self.attention(normal, normal, normal, need_weights=False)[0]
        logits: Tensor = self.classifier((state + self.rest(state)).mean(1))
        return logits


class Recurrent(nn.Module):
    """A recurrent layer of some kind, and what it says at the end of the sequence."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer = layer
        self.classifier = nn.Linear(width, 10)

    def forward(self, sequences: Tensor) -> Tensor:
        """The logits of ten classes."""
        logits: Tensor = self.classifier(self.layer(sequences)[0][:, -1])
        return logits


def images() -> Batch:
    """Four small ones."""
    return torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))


def sentences() -> Batch:
    """Four of twelve words."""
    return torch.randint(0, 50, (4, 12)), torch.randint(0, 10, (4,))


def sequences() -> Batch:
    """Four of seven vectors."""
    return torch.randn(4, 7, 6), torch.randint(0, 10, (4,))


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    """With momentum and decay."""
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """With decoupled decay."""
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


Optimizer = Callable[[nn.Module], torch.optim.Optimizer]
NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Batch], Optimizer]] = {
    "convolutional": (Convolutional, images, sgd),
    "attentive": (Attentive, sentences, adam),
    "lstm": (lambda: Recurrent(nn.LSTM(6, 16, batch_first=True), 16), sequences, sgd),
    "lstm, two layers both ways": (
        lambda: Recurrent(nn.LSTM(6, 16, 2, batch_first=True, bidirectional=True), 32),
        sequences,
        sgd,
    ),
    "gru": (lambda: Recurrent(nn.GRU(6, 16, batch_first=True), 16), sequences, adam),
    "gru, two layers both ways": (
        lambda: Recurrent(nn.GRU(6, 16, 2, batch_first=True, bidirectional=True), 32),
        sequences,
        adam,
    ),
}


def train(model: nn.Module, batches: list[Batch], optimizer: Optimizer, device: str) -> dict[str, Tensor]:
    """The losses, parameters and buffers after training, on the CPU."""
    model.to(device).train()
    step = optimizer(model)
    kept = {}
    for i, (inputs, wanted) in enumerate(batches):
        loss = functional.cross_entropy(model(inputs.to(device)), wanted.to(device))
        step.zero_grad()
        loss.backward()
        step.step()
        kept[f"loss {i}"] = loss.detach().cpu()
    return kept | {name: value.cpu() for name, value in model.state_dict().items()}


def differences(name: str) -> dict[str, float]:
    """How far the device's values are from the CPU's, where they are not the same bits."""
    build, batch, optimizer = NETWORKS[name]
    torch.manual_seed(1)
    model = build()
    batches = [batch() for _ in range(STEPS)]
    wanted = train(copy.deepcopy(model), batches, optimizer, "cpu")
    found = train(model, batches, optimizer, "npu")
    return {
        key: (value.double() - found[key].double()).abs().max().item()
        for key, value in wanted.items()
        if not torch.equal(value, found[key])
    }


def main() -> int:
    """Train all of them."""
    torch.set_num_threads(1)
    answers: dict[str, dict[str, float] | str] = {}
    for name in NETWORKS:
        try:
            answers[name] = differences(name)
        except Exception:
            answers[name] = traceback.format_exc()
    print(json.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
