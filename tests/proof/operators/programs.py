"""Small trainings whose operators are recorded in their second step, and faults that can be put into them.

Run as a program, one process records all of them: python -m tests.proof.operators.programs VENDOR FOLDER
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.proof.recording import operator_recorder

from .names import CPU, FAULTS

Fault = Callable[["Training"], AbstractContextManager[Any]]


class Training:
    """A model, its optimizer, and a step; faults change one of them."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(0)
        self.device = device
        self.source = random.Random(1)
        self.build()
        torch.manual_seed(
            1
        )  # the building drew from the host's generator, which on the CPU is the device's, too

    def build(self) -> None:
        raise NotImplementedError

    def loss(self) -> torch.Tensor:
        raise NotImplementedError

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    model: Any
    optimizer: Any

    def draw(self, *shape: int) -> torch.Tensor:
        """A batch that PyTorch has not made."""
        numbers = [self.source.gauss(0, 1) for _ in range(math.prod(shape))]
        return torch.tensor(numbers).view(shape).to(self.device)


class ConvNet(Training):
    """Convolutions, batch norm, dropout, pooling, a head; SGD with momentum."""

    def build(self) -> None:
        self.model = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(96, 5),
        ).to(self.device)  # fmt: skip
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def loss(self) -> torch.Tensor:
        target = torch.arange(4).remainder(5).to(self.device, non_blocking=True)
        return functional.cross_entropy(self.model(self.draw(4, 3, 8, 8)), target)


class Transformer(Training):
    """Attention, layer norm, dropout; AdamW, clipped gradients."""

    def build(self) -> None:
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 3)).to(
            self.device
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def loss(self) -> torch.Tensor:
        return self.model(self.draw(2, 6, 8)).square().mean()

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


class Recurrent(Training):
    """An embedding and a recurrent network; Adam."""

    def build(self) -> None:
        self.words = nn.Embedding(11, 6).to(self.device)
        self.model = nn.LSTM(6, 7, num_layers=2, dropout=0.2).to(self.device)
        parameters = [*self.words.parameters(), *self.model.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=1e-2)

    def loss(self) -> torch.Tensor:
        words = torch.tensor([[self.source.randrange(11) for _ in range(3)] for _ in range(5)]).to(
            self.device
        )
        states, (last, _) = self.model(self.words(words))
        return states.square().mean() + last.mean()


class Adversaries(Training):
    """A generator and a discriminator, two optimizers; the recorded step has both."""

    def build(self) -> None:
        self.model = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 6)).to(self.device)
        self.critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), betas=(0.5, 0.9))
        self.critics_optimizer = torch.optim.RMSprop(self.critic.parameters(), lr=1e-3)

    def step(self) -> None:
        real, fake = self.draw(5, 6), self.model(torch.randn(5, 4, device=self.device))
        judge = functional.binary_cross_entropy_with_logits
        self.critics_optimizer.zero_grad()
        right, wrong = torch.ones(5, 1, device=self.device), torch.zeros(5, 1, device=self.device)
        (judge(self.critic(real), right) + judge(self.critic(fake.detach()), wrong)).backward()
        self.critics_optimizer.step()
        self.optimizer.zero_grad()
        judge(self.critic(fake), right).backward()
        self.optimizer.step()


class Doubles(Training):
    """Casts to float64 on the device, which some devices do not have."""

    def build(self) -> None:
        self.model = nn.Linear(3, 3).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def loss(self) -> torch.Tensor:
        return self.model(self.draw(2, 3)).double().exp().sum().float()


TRAININGS = {kind.__name__: kind for kind in (ConvNet, Transformer, Recurrent, Adversaries, Doubles)}


class Wrong(TorchDispatchMode):
    """A kernel with a mistake: the n-th call of an operator gives a slightly different result."""

    def __init__(self, operator: str, nth: int = 1, output: int = 0, zero: bool = False) -> None:
        super().__init__()
        self._operator, self._left, self._output, self._zero = operator, nth, output, zero

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.name().split("::")[1] == self._operator:
            self._left -= 1
            if self._left == 0:
                self._spoil(result if result is not None else args[0])
        return result

    def _spoil(self, result: Any) -> None:
        tensor = result[self._output] if isinstance(result, (list, tuple)) else result
        if self._zero:
            tensor.zero_()
        tensor.view(-1)[0].mul_(1.001).add_(0 if self._zero else 1e-3)


def other_batch(training: Training) -> AbstractContextManager[Any]:
    training.source.seed(5)
    return nullcontext()


def other_weights(training: Training) -> AbstractContextManager[Any]:
    with torch.no_grad():
        next(training.model.parameters()).add_(1e-4)
    return nullcontext()


def other_momentum(training: Training) -> AbstractContextManager[Any]:
    for state in training.optimizer.state.values():
        state["momentum_buffer"].mul_(1.5)
    return nullcontext()


def other_random_numbers(training: Training) -> AbstractContextManager[Any]:
    torch.manual_seed(99)
    return nullcontext()


def extra_operator(training: Training) -> AbstractContextManager[Any]:
    training.model[4].register_forward_pre_hook(lambda _module, inputs: (inputs[0] + 0.5,))
    return nullcontext()


def missing_operator(training: Training) -> AbstractContextManager[Any]:
    training.model[2] = nn.Identity()
    return nullcontext()


def evaluating(training: Training) -> AbstractContextManager[Any]:
    training.model[1].eval()
    return nullcontext()


def other_rate(training: Training) -> AbstractContextManager[Any]:
    training.optimizer.param_groups[0]["lr"] = 0.11
    return nullcontext()


def no_update(training: Training) -> AbstractContextManager[Any]:
    training.optimizer.step = lambda: None
    return nullcontext()


def wrong(operator: str, nth: int = 1, output: int = 0) -> Fault:
    return lambda _training: Wrong(operator, nth, output)


def none(training: Training) -> AbstractContextManager[Any]:
    return nullcontext()


PUT: dict[str, Fault] = {
    "wrong convolution": wrong("convolution", nth=2),
    "wrong pooling": wrong("max_pool2d_with_indices"),
    "wrong convolution backward": wrong("convolution_backward", output=1),
    "wrong threshold backward": wrong("threshold_backward", nth=2),
    "wrong optimizer": wrong("_foreach_add_.List", nth=2, output=2),
    "wrong running statistics": wrong("native_batch_norm", output=1),
    "wrong loss": wrong("nll_loss_forward"),
    "wrong layer norm": wrong("native_layer_norm", nth=3),
    "wrong layer norm backward": wrong("native_layer_norm_backward", nth=2),
    "wrong gradient norm": wrong("linalg_vector_norm"),
    "wrong second moment": wrong("_foreach_addcmul_.Scalar", output=4),
    "wrong embedding backward": wrong("embedding_dense_backward"),
    "wrong loss of the critic": wrong("binary_cross_entropy_with_logits", nth=2),
    "zeros instead of a result": lambda _training: Wrong("max_pool2d_with_indices", zero=True),
    "other dropout mask": other_random_numbers,
    "other noise": other_random_numbers,
    "other batch": other_batch,
    "other weights": other_weights,
    "other momentum": other_momentum,
    "extra operator": extra_operator,
    "missing operator": missing_operator,
    "batch norm evaluating": evaluating,
    "other learning rate": other_rate,
    "no update": no_update,
}


def record(training: Training, file: Path, fault: Fault = none) -> None:
    """The second step of a training, with or without a fault."""
    training.step()
    with fault(training):
        recorder = operator_recorder(file)
        recorder.start()
        training.step()
        recorder.stop()


def device_of(vendor: str) -> str:
    """The CPU, or the vendor's device, which is simulated from now on."""
    if vendor == CPU:
        return CPU
    from torchferry.sim import activate
    from torchferry.vendors.registry import get_vendor

    activate(vendor)
    return get_vendor(vendor).device_type


def main() -> None:
    """All trainings and, on a device, all faults."""
    vendor, folder = sys.argv[1], Path(sys.argv[2])
    device = device_of(vendor)
    for name, kind in TRAININGS.items():
        record(kind(device), folder / f"{name}.operators")
    if vendor != CPU:
        for fault, put in PUT.items():
            record(TRAININGS[FAULTS[fault].training](device), folder / f"{fault}.operators", put)


if __name__ == "__main__":
    main()
