"""One step of a model, captured: forward, and on request backward and optimizer, under autocast or without contents."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from textwrap import dedent
from typing import Any

import torch
from torch.utils import _python_dispatch

from torchferry import variables
from torchferry.errors import InputError, RunError
from torchferry.readiness.capture.choices import as_on_device
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.capture.program import warm_up
from torchferry.readiness.cases import notation
from torchferry.readiness.cases.model import Draw, TensorContents, TensorInput
from torchferry.readiness.cases.writing import lines_for
from torchferry.readiness.model import Capture, Special
from torchferry.readiness.models.making import (
    FakeCapturingMode,
    MostlyFakeMode,
    find,
    how_to_call_model,
    make_model,
    taken_for_real,
    told_as,
)
from torchferry.readiness.models.request import InputValue, ModelRequest, parse_inputs


def own_loss(output: Any) -> torch.Tensor | None:
    """The loss that a model has computed itself, as those of transformers do."""
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return found if isinstance(found, torch.Tensor) and found.numel() == 1 and found.requires_grad else None


def differentiable(output: Any) -> list[torch.Tensor]:
    """The tensors of an output that autograd can go back from, each once."""
    found = {id(tensor): tensor for tensor in _tensors(output) if tensor.requires_grad}
    return list(found.values())


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _tensors(value)
    elif is_dataclass(output) and not isinstance(output, type):
        for field in fields(output):
            yield from _tensors(getattr(output, field.name))


_FRACTIONS = TensorContents(Draw.NORMAL)
# Of integers nothing is known: 0 and 1 are in range for every embedding, class or mask.
_INTEGERS = TensorContents(Draw.INTS, 0, 2)


def built(value: InputValue, device: torch.device) -> Any:
    """An argument as the model gets it."""
    if isinstance(value, TensorInput):
        return drawn(value).to(device)
    if isinstance(value, (list, tuple)):
        return [built(each, device) for each in value]
    if isinstance(value, dict):
        return {name: built(each, device) for name, each in value.items()}
    if isinstance(value, Special):
        return device if value.kind == "device" else getattr(torch, value.text)
    return value


def drawn(tensor: TensorInput) -> torch.Tensor:
    """A tensor of the shape, dtype, contents and strides that are asked for, made as in the file of a case."""
    if tensor.contents.draw is Draw.DEFAULT:
        contents = _FRACTIONS if notation.is_floating(tensor.dtype) else _INTEGERS
        tensor = replace(tensor, contents=contents)
    names: dict[str, Any] = {"torch": torch, "random": torch.default_generator}
    exec(dedent("\n".join(lines_for("tensor", tensor, {}))), names)
    made: torch.Tensor = names["tensor"]
    return made


_LEARNING_RATE = 1e-3
# A loss scaled by 65536, as usual, often overflows in the first step, and the optimizer is not called.
_SCALE = 1.0


def capture_here(request: ModelRequest) -> Capture:
    """Make the model in this process and capture one step of it."""
    torch.manual_seed(0)
    fake = MostlyFakeMode() if request.fake else None
    with fake or nullcontext(), taken_for_real() if fake else nullcontext():
        step = _prepare(request, fake)
        began = time.monotonic()
        mode = FakeCapturingMode() if fake else CapturingMode(request.device)
        with ExitStack() as stack:
            if not request.device:
                stack.enter_context(as_on_device())
            stack.enter_context(mode.switched_on())
            steps = step.run()
        uses = mode.uses()
        if fake:  # the time of shapes says nothing
            uses = tuple(replace(use, seconds=0.0) for use in uses)
        return Capture(
            program=request.described,
            origin="model",
            device=request.device or "cpu",
            torch=torch.__version__,
            steps=steps,
            seconds=0.0 if fake else round(time.monotonic() - began, 6),
            uses=uses,
            modules=mode.modules(),
            notes=tuple(sorted(mode.notes | _notes(request, step.model, steps))),
        )


@dataclass(frozen=True)
class _ModelStep:
    """A forward pass, and on request a backward pass and a step of the optimizer; all that it needs is made before the
    capture begins."""

    request: ModelRequest
    model: torch.nn.Module
    args: list[Any]
    kwargs: dict[str, Any]
    loss: Callable[..., torch.Tensor] | None
    optimizer: torch.optim.Optimizer | None
    scaler: Any  # None: without

    def run(self) -> int:
        """Make the step; answers how many the optimizer made."""
        request, model = self.request, self.model
        with (
            told_as("the forward pass", how_to_call_model(model), request.fake),
            self._autocast(),
            torch.set_grad_enabled(request.backward),
        ):
            output = model(*self.args, **self.kwargs)
        if self.optimizer is None:
            return 0
        loss = self._loss(output)
        with told_as("the backward pass", fake=request.fake):
            self._backward(loss, output)
        with told_as(f"the step of {request.optimizer}", fake=request.fake):
            return self._step(self.optimizer)

    def _autocast(self) -> Any:
        request = self.request
        if not request.amp:
            return nullcontext()
        return torch.autocast(request.device or "cpu", getattr(torch, request.amp))

    def _loss(self, output: Any) -> torch.Tensor | None:
        if self.loss is None:
            return own_loss(output)
        with told_as(f"--loss {self.request.loss}", fake=self.request.fake), self._autocast():
            loss = self.loss(output, *self.args)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise RunError(
                f"--loss {self.request.loss}: it has to answer one number that depends on the model"
            )
        return loss

    def _backward(self, loss: torch.Tensor | None, output: Any) -> None:
        """From a loss; without one from all outputs, so that no operator is captured that is not the model's."""
        scaler = self.scaler
        if loss is not None:
            (loss if scaler is None else scaler.scale(loss)).backward()
            return
        outputs = differentiable(output)
        if not outputs:
            raise RunError(
                "--backward: nothing in the model's output depends on its parameters; name a loss with --loss"
            )
        with _python_dispatch._disable_current_modes():
            seeds = [torch.full_like(each, 1 / max(each.numel(), 1)) for each in outputs]
            if scaler is not None:  # it has to know the device
                scaler.scale(torch.zeros((), device=outputs[0].device))
        torch.autograd.backward(outputs, seeds)

    def _step(self, optimizer: torch.optim.Optimizer) -> int:
        if self.scaler is None:
            optimizer.step()
            return 1
        steps: list[object] = []  # a scaler leaves one out when gradients have overflowed
        optimizer.register_step_post_hook(lambda *given: steps.append(given))
        self.scaler.step(optimizer)
        self.scaler.update()
        return len(steps)


def _prepare(request: ModelRequest, fake: MostlyFakeMode | None) -> _ModelStep:
    model = make_model(request).train(request.train)
    device = torch.device(request.device or "cpu")
    with told_as("--input"):
        inputs = parse_inputs(request.inputs)
        args = [built(value, device) for value in inputs.args]
        kwargs = {name: built(value, device) for name, value in inputs.kwargs.items()}
    if request.device:
        with told_as(f"moving the model to {device}"):
            model.to(device)
    if fake is not None:
        fake.empty(model)
        args, kwargs = fake.fake(args), fake.fake(kwargs)
    if any(map(torch.nn.parameter.is_lazy, model.parameters())):
        with told_as("the forward pass", how_to_call_model(model), request.fake), torch.no_grad():
            model(*args, **kwargs)
        if fake is not None:
            fake.empty(model)  # what has just been made
    if fake is None and not request.device:
        warm_up()
    loss = find(request.loss, "--loss") if request.loss else None
    optimizer = _optimizer(request.optimizer, model) if request.backward else None
    scaler = None
    if request.backward and request.amp == "float16":
        if not hasattr(torch.amp, "GradScaler"):
            raise RunError("--amp float16 with --backward needs PyTorch 2.3; use --amp bfloat16")
        scaler = torch.amp.GradScaler(request.device or "cpu", init_scale=_SCALE)
    return _ModelStep(request, model, args, kwargs, loss, optimizer, scaler)


def _optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    kind = getattr(torch.optim, name, None)
    if not isinstance(kind, type) or not issubclass(kind, torch.optim.Optimizer):
        raise InputError(f"--optimizer {name}: torch.optim has no such optimizer; SGD, Adam, AdamW ...")
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise RunError("--backward: the model has no parameter that is trained; leave --backward out")
    make: Any = kind
    with told_as(f"--optimizer {name}"):
        optimizer: torch.optim.Optimizer = make(parameters, lr=_LEARNING_RATE)
    return optimizer


def _notes(request: ModelRequest, model: torch.nn.Module, steps: int) -> set[str]:
    found = {
        "fake": request.fake,
        "no_step": request.backward and not steps,
        "scripted": any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()),
        "cpu_autocast": bool(request.amp) and not request.device and variables.LAYER not in os.environ,
    }
    return {note for note, applies in found.items() if applies}
