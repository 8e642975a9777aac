"""Trains a model of the catalogue for two steps, on the CPU and on a device, and compares bit by bit."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .entry import Batch, ModelEntry, Turn

STEPS = 2
_BUILD_SEED = 20210
_TRAIN_SEED = 7


@dataclass(frozen=True)
class Trace:
    """What a training run left behind."""

    losses: list[Tensor]  # on the CPU; one for each turn of each step
    state: dict[str, Tensor]  # parameters and buffers, on the CPU
    devices: set[str]  # where parameters, buffers and losses were
    without_gradient: list[str]  # trainable parameters that took no part
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """One model on the CPU and on a device."""

    name: str
    origin: str
    source: str
    note: tuple[str, str] | None
    parameters: int
    turns: int  # losses in a step
    losses: list[float]
    device_losses: list[float]
    different_losses: list[int]
    different_state: list[str]  # names of parameters and buffers
    devices: list[str]  # where the second run's tensors were
    without_gradient: list[str]
    unchanged: bool  # training had no effect
    cpu_seconds: float
    device_seconds: float

    @property
    def equal(self) -> bool:
        """Whether the two runs can't be told apart."""
        return not self.different_losses and not self.different_state


def compare(entry: ModelEntry, device: str) -> Comparison:
    """Train twins of one model on the CPU and on a device, with the same data and the same random numbers."""
    torch.manual_seed(_BUILD_SEED)
    model = entry.build()
    batches = [entry.batch() for _ in range(STEPS)]
    on_cpu = train(entry, copy.deepcopy(model), batches, "cpu")
    unchanged = not _different(model.state_dict(), on_cpu.state)
    on_device = train(entry, model, batches, device)
    return Comparison(
        name=entry.name,
        origin=entry.origin.value,
        source=entry.source,
        note=None if entry.note is None else (entry.note.en, entry.note.zh),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        turns=len(entry.turns),
        losses=[loss.item() for loss in on_cpu.losses],
        device_losses=[loss.item() for loss in on_device.losses],
        different_losses=[
            index
            for index, pair in enumerate(zip(on_cpu.losses, on_device.losses, strict=True))
            if not torch.equal(*pair)
        ],
        different_state=_different(on_cpu.state, on_device.state),
        devices=sorted(on_device.devices),
        without_gradient=sorted({*on_cpu.without_gradient, *on_device.without_gradient}),
        unchanged=unchanged,
        cpu_seconds=on_cpu.seconds,
        device_seconds=on_device.seconds,
    )


def train(entry: ModelEntry, model: nn.Module, batches: list[Batch], device: str) -> Trace:
    """Train a model on a device with each batch in turn."""
    # Seeds the device's generator as well, so that dropout draws the same numbers everywhere.
    torch.manual_seed(_TRAIN_SEED)
    begin = time.perf_counter()
    model.to(device).train()
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    optimizers = [
        entry.optimizer([value for part in turn.parts for value in model.get_submodule(part).parameters()])
        for turn in entry.turns
    ]
    devices = {value.device.type for value in model.state_dict().values()}
    losses = []
    for batch in batches:
        batch = {name: value.to(device) for name, value in batch.items()}
        for turn, optimizer in zip(entry.turns, optimizers, strict=True):
            loss = update(model, batch, turn, optimizer)
            devices.add(loss.device.type)
            losses.append(loss.to("cpu"))
            trained -= {name for name, value in model.named_parameters() if value.grad is not None}
    # The large models need the room for the copies that follow.
    optimizers.clear()
    model.zero_grad()
    state = {name: value.to("cpu") for name, value in model.state_dict().items()}
    return Trace(losses, state, devices, sorted(trained), time.perf_counter() - begin)


def update(model: nn.Module, batch: Batch, turn: Turn, optimizer: torch.optim.Optimizer) -> Tensor:
    """Take one turn and answer its loss."""
    model.zero_grad()
    loss = turn.loss(model, batch)
    loss.backward()
    if turn.clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), turn.clip)
    optimizer.step()
    return loss.detach()


def _different(left: dict[str, Tensor], right: dict[str, Tensor]) -> list[str]:
    """The names of the tensors that are not bitwise equal, or in one of the two only."""
    names = sorted(left.keys() | right.keys())
    return [name for name in names if not _same(left.get(name), right.get(name))]


def _same(left: Tensor | None, right: Tensor | None) -> bool:
    return left is not None and right is not None and left.dtype == right.dtype and torch.equal(left, right)
