"""Trainings whose second step is recorded: a convolutional network, a transformer, a recurrent network; in single
precision and in bfloat16."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.recorder import Recorder


class Training:
    """A model, its optimizer, a step."""

    def __init__(self, device: str, dtype: torch.dtype = torch.float32) -> None:
        torch.manual_seed(0)
        self.device, self.dtype = device, dtype
        self.source = random.Random(1)
        self.build()
        torch.manual_seed(1)

    model: Any
    optimizer: Any
    clipped: float | None = None

    def build(self) -> None:
        raise NotImplementedError

    def loss(self) -> torch.Tensor:
        raise NotImplementedError

    def casting(self) -> AbstractContextManager[Any]:
        """In bfloat16 where that is safe, as most programs do it."""
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device, dtype=self.dtype)

    def step(self) -> None:
        self.optimizer.zero_grad()
        with self.casting():
            loss = self.loss()
        loss.backward()
        if self.clipped is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clipped)
        self.optimizer.step()

    def draw(self, *shape: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.source.randrange(1 << 30))
        return torch.randn(shape, generator=generator).to(self.device)

    def choose(self, high: int, *shape: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.source.randrange(1 << 30))
        return torch.randint(high, shape, generator=generator).to(self.device)


class Images(Training):
    """Convolutions, batch norm, pooling, dropout; SGD with momentum."""

    def build(self) -> None:
        self.model = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, padding=1, stride=2), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1, groups=4), nn.LeakyReLU(0.1), nn.AvgPool2d(2),
            nn.Dropout(0.3), nn.Flatten(), nn.Linear(24 * 4, 10),
        ).to(self.device)  # fmt: skip
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def loss(self) -> torch.Tensor:
        return functional.cross_entropy(self.model(self.draw(8, 3, 16, 16)), self.choose(10, 8))


class Words(Training):
    """An embedding, attention, layer norm, GELU; AdamW, clipped gradients."""

    clipped = 1.0

    def build(self) -> None:
        layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.0, batch_first=True, activation="gelu")
        self.model = nn.Sequential(
            nn.Embedding(40, 48), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.LayerNorm(48),
            nn.Linear(48, 40),
        ).to(self.device)  # fmt: skip
        if self.dtype != torch.float32:
            self.model.to(self.dtype)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def casting(self) -> AbstractContextManager[Any]:
        return nullcontext()  # all of it is in this dtype

    def loss(self) -> torch.Tensor:
        words = self.choose(40, 4, 13)
        logits = self.model(words[:, :-1])
        return functional.cross_entropy(logits.reshape(-1, 40).float(), words[:, 1:].reshape(-1))


class Attention(nn.Module):
    """By its formula, so that each operator shows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.all(x).chunk(3, -1)
        weights = (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).softmax(-1)
        return self.out(weights @ value)


class Sequences(Training):
    """Cells of a recurrent network, one after the other, attention over their states; Adam, clipped gradients."""

    clipped = 0.5

    def build(self) -> None:
        self.model = nn.ModuleDict(
            {"words": nn.Embedding(30, 24), "cell": nn.LSTMCell(24, 32), "attention": Attention(32),
             "head": nn.Sequential(nn.SiLU(), nn.Linear(32, 30), nn.Tanh())}
        ).to(self.device)  # fmt: skip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2, weight_decay=1e-3)

    def loss(self) -> torch.Tensor:
        words = self.choose(30, 5, 8)
        state = None
        states = []
        for place in range(4):
            state = self.model["cell"](self.model["words"](words[place]), state)
            states.append(state[0])
        found = self.model["head"](self.model["attention"](torch.stack(states, 1)))
        return functional.mse_loss(found, found.detach().roll(1, 0), reduction="sum") / 100 + found.std()


class Others(Training):
    """What the others leave out: borders of pooling, masks, words that do not count, sorting, resizing, random numbers,
    a scaled loss; AdamW in one kernel."""

    def build(self) -> None:
        self.model = nn.ModuleDict(
            {"words": nn.Embedding(24, 16, padding_idx=0), "picture": nn.Conv2d(3, 6, 3), "norm": nn.LayerNorm(16),
             "pictures": nn.BatchNorm2d(6), "head": nn.Linear(16, 24)}
        ).to(self.device, self.dtype)  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)

    def casting(self) -> AbstractContextManager[Any]:
        return nullcontext()  # all of it is in this dtype

    def draw(self, *shape: int) -> torch.Tensor:
        return super().draw(*shape).to(self.dtype)

    def loss(self) -> torch.Tensor:
        words = self.choose(24, 6, 10)
        return self._of_words(words) + self._of_pictures() + self._of_numbers(words)

    def _of_words(self, words: torch.Tensor) -> torch.Tensor:
        found = functional.dropout(self.model["words"](words), 0.3)
        found = found.clone().add_(found.detach().roll(1, 0))
        scores = (found @ found.transpose(1, 2)).masked_fill((words == 0)[:, None], float("-inf"))
        found = self.model["norm"](scores.softmax(-1) @ found)
        logits = self.model["head"](found).flatten(0, 1).float()
        targets = words.roll(1, 1).flatten()
        return functional.cross_entropy(logits, targets.masked_fill(targets == 3, -100))

    def _of_pictures(self) -> torch.Tensor:
        found = self.model["pictures"](self.model["picture"](self.draw(4, 3, 14, 14)))
        found = functional.max_pool2d(functional.avg_pool2d(found, 3, 2, 1), 3, 2, 1)
        large = functional.interpolate(found.float(), (7, 7), mode="bilinear", align_corners=False)
        return large.square().mean()

    def _of_numbers(self, words: torch.Tensor) -> torch.Tensor:
        table = self.model["head"].weight
        added = torch.zeros_like(table).index_add(
            0, words.flatten(), self.model["words"](words).flatten(0, 1)
        )
        noise = torch.empty(512, device=self.device).uniform_()
        best = table.topk(3, 1).values.sum() + table.sort(0).values[:2].sum()
        return table.cumsum(0).float().mean() + added.float().mean() + best.float() / 100 + noise.mean()

    def step(self) -> None:
        self.optimizer.zero_grad()
        (self.loss() * 1024).backward()
        gradients = [each.grad for each in self.model.parameters()]
        found, inverse = (torch.full((1,), value, device=self.device) for value in (0.0, 1 / 1024))
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
        self.optimizer.step()


class Large(Training):
    """Tensors that are judged in parts."""

    def build(self) -> None:
        self.model = nn.LayerNorm(24).to(self.device)

    def step(self) -> None:
        self.model(self.draw(70_000, 24)) * 1.5
        torch.full((6_500_000,), 4.0, device=self.device).sum()


class Products(Training):
    """Products that are held against single precision before anything is computed in double precision."""

    def build(self) -> None:
        self.linear = nn.Linear(512, 1024, bias=False).to(self.device, self.dtype)
        self.convolution = nn.Conv2d(32, 64, 3, padding=1).to(self.device, self.dtype)

    def draw(self, *shape: int) -> torch.Tensor:
        return super().draw(*shape).to(self.dtype)

    def step(self) -> None:
        self.linear(self.draw(2048, 512))
        self.convolution(self.draw(8, 32, 48, 48))
        functional.scaled_dot_product_attention(*(self.draw(4, 8, 256, 64) for _ in range(3)))


TRAININGS: dict[str, Callable[[str], Training]] = {
    "Images": Images,
    "Words": Words,
    "Sequences": Sequences,
    "Images bf16": lambda device: Images(device, torch.bfloat16),
    "Words bf16": lambda device: Words(device, torch.bfloat16),
    "Sequences bf16": lambda device: Sequences(device, torch.bfloat16),
    "Others": Others,
    "Others bf16": lambda device: Others(device, torch.bfloat16),
    "Large": Large,
    "Products": Products,
    "Products bf16": lambda device: Products(device, torch.bfloat16),
}
SLOW = ("Others", "Others bf16", "Large", "Products", "Products bf16")  # not tried each time


def record(training: Training, path: Path, kernels: AbstractContextManager[Any] | None = None) -> None:
    """The second step, with the kernels of the device or with these."""
    training.step()
    header = RecordHeader(Kept.TENSORS, "training", training.device, torch.__version__)
    with kernels or nullcontext():
        recorder = Recorder(path, header)
        recorder.start()
        training.step()
        recorder.stop()
