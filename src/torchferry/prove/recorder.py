"""Records the steps of this process: what the hooks in recording.py report to it goes into a file, line by line."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import torch
from torch.nn.parameter import is_lazy

from torchferry.observe.modes import unobserved
from torchferry.prove.facts import tensor_facts
from torchferry.prove.model import MAIN, LossRecord, NamedFacts, ProcessIdentity, StepRecord
from torchferry.prove.naming import Namer, Naming
from torchferry.prove.places import user_place
from torchferry.prove.records import SUFFIX, identity_line, step_line
from torchferry.prove.settings import ProofSettings


class Recorder:
    """What one process has done so far."""

    def __init__(self, settings: ProofSettings) -> None:
        self.settings = settings
        self.steps = 0  # of all optimizers
        self._most = 0  # of one optimizer
        self._lock = threading.RLock()
        self._file: IO[str] | None = None
        self._losses: list[LossRecord] = []
        self._loss_devices: set[str] = set()
        self._scaled: list[tuple[weakref.ref[torch.Tensor], float]] = []
        self._skipped = 0
        self._backwards = 0
        self._optimizers: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Stepping] = (
            weakref.WeakKeyDictionary()
        )
        self._known_optimizers = 0
        self._namer = Namer()

    def backward(self, losses: Sequence[torch.Tensor]) -> None:
        """The program is about to call backward on these."""
        with self._lock, unobserved():
            place = user_place(sys._getframe(1))
            self._open()
            self._backwards += 1
            self._losses += [
                LossRecord(_value(loss) / self._scale_of(loss), tensor_facts(loss), place) for loss in losses
            ]
            self._loss_devices |= _device_types(losses)

    def scaled(self, loss: torch.Tensor, scale: float) -> None:
        """A GradScaler has multiplied a loss by this."""
        with self._lock:
            self._scaled = [entry for entry in self._scaled if entry[0]() is not None]
            self._scaled.append((weakref.ref(loss), scale))

    def _scale_of(self, loss: torch.Tensor) -> float:
        return next((scale for scaled, scale in self._scaled if scaled() is loss), 1.0)

    def skipped(self) -> None:
        """A GradScaler has left out a step."""
        with self._lock:
            self._skipped += 1

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step."""
        with self._lock, unobserved():
            stepping = self._stepping(optimizer)
            stepping.backwards_before = self._backwards
            stepping.gradients = stepping.gradients_now(optimizer)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped."""
        with self._lock, unobserved():
            stepping = self._stepping(optimizer)
            if (
                stepping.backwards_before != self._backwards
            ):  # a closure: the gradients came about inside the step
                stepping.gradients = stepping.gradients_now(optimizer)
            self.steps += 1
            stepping.steps += 1
            self._most = max(self._most, stepping.steps)
            self._write(optimizer, stepping)
            self._losses, self._loss_devices, self._skipped, stepping.gradients = [], set(), 0, ()

    def steps_of(self, optimizer: torch.optim.Optimizer) -> int:
        """How often an optimizer has stepped."""
        stepping = self._optimizers.get(optimizer)
        return stepping.steps if stepping else 0

    def is_complete(self) -> bool:
        """Whether the optimizer that has stepped most has stepped as often as was asked for."""
        if self.settings.operators_step:
            return self.steps >= self.settings.operators_step
        return self.settings.steps is not None and self._most >= self.settings.steps

    def _write(self, optimizer: torch.optim.Optimizer, stepping: _Stepping) -> None:
        step = StepRecord(
            ordinal=self.steps,
            optimizer=stepping.index,
            optimizer_type=type(optimizer).__name__,
            losses=tuple(self._losses),
            skipped=self._skipped,
            gradients=stepping.gradients,
            parameters=stepping.parameters_now(optimizer),
            buffers=stepping.buffers_now(),
            devices=tuple(sorted(self._loss_devices | _device_types(_parameters(optimizer)))),
        )
        file = self._open()
        file.write(step_line(step))
        file.flush()

    def _open(self) -> IO[str]:
        """The file, made when there is something to record: a data loader's worker leaves none."""
        if self._file is None:
            identity = _identity()
            path = Path(self.settings.folder) / f"{identity.pid}-{identity.started}{SUFFIX}"
            self._file = path.open("x", encoding="utf-8")
            self._file.write(identity_line(identity))
            self._file.flush()
        return self._file

    def _stepping(self, optimizer: torch.optim.Optimizer) -> _Stepping:
        found = self._optimizers.get(optimizer)
        if found is None:
            found = self._optimizers[optimizer] = _Stepping(self._known_optimizers, self._namer)
            self._known_optimizers += 1
        return found


class _Stepping:
    """What is known of one optimizer."""

    def __init__(self, index: int, namer: Namer) -> None:
        self.index = index
        self.steps = 0
        self.backwards_before = 0
        self.gradients: tuple[NamedFacts, ...] = ()
        self._namer = namer
        self._naming = Naming({}, ())
        self._named: list[str] = []

    def gradients_now(self, optimizer: torch.optim.Optimizer) -> tuple[NamedFacts, ...]:
        parameters = _parameters(optimizer)
        gradients = [parameter.grad for parameter in parameters]
        facts = [None if gradient is None else tensor_facts(gradient) for gradient in gradients]
        return tuple(map(NamedFacts, self._names(optimizer, parameters), facts))

    def parameters_now(self, optimizer: torch.optim.Optimizer) -> tuple[NamedFacts, ...]:
        parameters = _parameters(optimizer)
        facts = [None if is_lazy(parameter) else tensor_facts(parameter) for parameter in parameters]
        return tuple(map(NamedFacts, self._names(optimizer, parameters), facts))

    def buffers_now(self) -> tuple[NamedFacts, ...]:
        return tuple(NamedFacts(name, tensor_facts(each)) for name, each in self._naming.cheap_buffers())

    def _names(self, optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> list[str]:
        """Found at the first step, and again when the optimizer was given more parameters."""
        if len(self._named) != len(parameters):
            self._naming = self._namer.name(parameters)
            places = [
                f"optimizer{self.index}.group{number}.{place}"
                for number, group in enumerate(optimizer.param_groups)
                for place in range(len(group["params"]))
            ]
            named = self._naming.names
            self._named = [named.get(id(each), place) for each, place in zip(parameters, places, strict=True)]
        return self._named


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _device_types(tensors: Sequence[torch.Tensor]) -> set[str]:
    return {str(tensor.device.type) for tensor in tensors}


def _value(loss: torch.Tensor) -> float:
    """The loss as a number; of several, their sum."""
    whole = loss.detach().cpu()
    return float((whole.real if whole.is_complex() else whole).double().sum())


def current_rank() -> int | None:
    """This process's place among several; None where there are none."""
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else None


def _identity() -> ProcessIdentity:
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return ProcessIdentity(
        rank=current_rank(),
        role=MAIN if multiprocessing.parent_process() is None else multiprocessing.current_process().name,
        pid=os.getpid(),
        started=time.time_ns(),
        restart=int(restart) if restart.isdigit() else 0,
        torch=str(torch.__version__),
    )
