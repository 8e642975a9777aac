"""Watches a training through hooks of modules, tensors and optimizers; between the watched steps there are none."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.weak import WeakTensorKeyDictionary

from torchferry.accuracy.model import Header
from torchferry.accuracy.watch.owners import Owners, path_of
from torchferry.accuracy.watch.rows import StepRows, Where
from torchferry.observe.modes import unobserved
from torchferry.observe.scalers import is_skipping, scale_of, unwatch_scalers, watch_scalers
from torchferry.observe.steps import is_outermost_step
from torchferry.observe.tensors import local_part, why_unreadable
from torchferry.observe.where import BACKWARD, FORWARD, OPTIMIZER, PARAMETER, Whereabouts

LOSS, MODULE, OUTPUT_GRADIENT, GRADIENT, GRADIENT_NORM = (
    "loss",
    "module",
    "output_gradient",
    "gradient",
    "gradient_norm",
)
PARAMETERS, UPDATE, BUFFERS, LEARNING_RATE, SCALE, STEP = (
    "parameter",
    "update",
    "buffer",
    "learning_rate",
    "scale",
    "step",
)
_MOST_CALLS = 16  # of one module in a step: a recurrent one is called for each word
_MOST_TENSORS = 8  # of one answer
_SAMPLE = 1 << 20  # elements of a parameter that are copied to see how they change


class Watcher:
    """Of one process. Call `begin` when the first step begins, `next_step` after each, `stop` at the end."""

    def __init__(self, path: Path, header: Header, every: int, on_host: frozenset[str]) -> None:
        self.rows = StepRows(path, header, on_host)
        self.watched = 0  # steps
        self.failed = ""  # why nothing more is watched; "" all is well
        self._every = every
        self._where = Whereabouts()
        self._owners = Owners()
        self._lock = threading.RLock()
        self._scaled: Any = WeakTensorKeyDictionary()  # loss that was scaled -> as it was
        self._scaler: Any = None
        self._step = 0  # that is being watched; 0: none
        self._began = 0.0
        self._handles: list[Any] = []
        self._called: dict[int, int] = {}  # module -> how often in this step
        self._before: list[
            tuple[torch.Tensor, torch.Tensor | None]
        ] = []  # parameters, and samples from before the step; None: it can't be read
        self._always = [register_optimizer_step_pre_hook(self._before_optimizer)]
        self._backward = torch.autograd.backward
        watch_scalers(self._loss_scaled)
        torch.autograd.backward = self._told_of_backward(self._backward)

    def begin(self, step: int) -> None:
        """This step begins."""
        if self.failed or (step != 1 and step % self._every):
            return
        self._step = step
        # ours first: it is called while the module is still the innermost one
        self._handles = [modules.register_module_forward_hook(self._module_called)]
        self._where.watch()
        self._began = time.perf_counter()

    def next_step(self, step: int) -> None:
        """The one before has ended, this one begins."""
        if self._step:
            with self._unharmed():
                self._finish()
            self._end_step()
        self.begin(step)

    def stop(self, notes: tuple[str, ...] = ()) -> None:
        """A step that has not ended is not kept."""
        self.leave()
        self.rows.close(notes)

    def leave(self) -> None:
        """Watch no longer, and leave the file alone."""
        self._end_step()
        for handle in self._always:
            handle.remove()
        unwatch_scalers(self._loss_scaled)
        torch.autograd.backward = self._backward
        self.rows.forget()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """Modules that load data are no models."""
        step, self._step = self._step, 0
        try:
            yield
        finally:
            self._step = step

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Around what looks at a program's tensors: what fails in it ends the watching, and never the program."""
        try:
            with self._lock, unobserved():
                yield
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"
            self._step = 0  # hooks go when the step ends: this may be one of them

    def _end_step(self) -> None:
        self._step = 0
        for handle in self._handles:
            handle.remove()
        self._handles, self._called, self._before, self._scaler = [], {}, [], None
        self._where.unwatch()

    def _module_called(self, module: torch.nn.Module, _arguments: Any, answer: Any) -> None:
        if not self._step or torch._C._current_graph_task_id() != -1:  # a checkpoint calls it again
            return
        named: list[tuple[str, torch.Tensor]] = []
        with self._unharmed():
            count = self._called[id(module)] = self._called.get(id(module), 0) + 1
            if count > _MOST_CALLS:
                return
            site = self._where.site()
            self._owners.learn(module, site)
            found = [(f"output_{place}", tensor) for place, tensor in enumerate(_tensors_in(answer))]
            named = [(name, tensor) for name, tensor in found[:_MOST_TENSORS] if tensor.is_floating_point()]
            where = (site.model, path_of(module, site), type(module).__name__)
            if named:
                self.rows.add(Where(MODULE, FORWARD, *where), named)
        for name, tensor in named:
            if tensor.requires_grad and self._step:
                tensor.register_hook(  # type: ignore[no-untyped-call]
                    functools.partial(self._gradient_came, self._step, where, name)
                )

    def _gradient_came(
        self, step: int, where: tuple[str, str, str], name: str, gradient: torch.Tensor | None
    ) -> None:
        """Not every derivative has one for each of its results."""
        if step == self._step and gradient is not None:
            with self._unharmed():
                self.rows.add(Where(OUTPUT_GRADIENT, BACKWARD, *where), [(name, gradient)])

    def _loss_scaled(self, scaler: Any, given: Any, answered: Any) -> None:
        self._scaler = scaler
        if isinstance(given, torch.Tensor) and isinstance(answered, torch.Tensor) and self._step:
            self._scaled[answered] = given.detach()

    def _told_of_backward(self, original: Any) -> Any:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._step and torch._C._current_graph_task_id() == -1:
                self._backward_called(tensors)
            return original(tensors, *args, **kwargs)

        return backward

    def _backward_called(self, tensors: Any) -> None:
        with self._unharmed():
            losses = [self._scaled.get(tensor, tensor) for tensor in _tensors_in(tensors)]
            if losses:
                named = [(f"output_{place}", loss) for place, loss in enumerate(losses)]
                self.rows.add(Where(LOSS, FORWARD), named)

    def _before_optimizer(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if not self._step or not is_outermost_step():
            return
        with self._unharmed():
            unscale = getattr(optimizer, "grad_scale", None)  # optimizers that take the scale out themselves
            for number, group in enumerate(optimizer.param_groups):
                rate = Where(LEARNING_RATE, OPTIMIZER, type(optimizer).__name__, f"group{number}")
                self.rows.add_number(rate, float(group.get("lr", math.nan)))
                for place, parameter in enumerate(group["params"]):
                    self._gradient_of(parameter, f"group{number}.{place}", unscale)
                    self._before.append((parameter, _sample(parameter)))

    def _gradient_of(self, parameter: torch.Tensor, unnamed: str, scale: torch.Tensor | None) -> None:
        if parameter.grad is None:
            return
        gradient = local_part(parameter.grad)
        owner = self._owners.of(parameter, unnamed)
        if scale is not None and not why_unreadable(gradient):
            gradient = gradient / scale.to(gradient.device)
        where = Where(GRADIENT, BACKWARD, owner.model, owner.module)
        self.rows.add(where, [(owner.name, gradient)], PARAMETER)

    def _finish(self) -> None:
        """After the optimizer's step, or where it was skipped."""
        rows = self.rows
        if not self._before:
            for parameter in self._owners.parameters():
                self._gradient_of(parameter, "", None)
        total = rows.totals(GRADIENT)
        if total is not None:
            rows.add_statistics(Where(GRADIENT_NORM, BACKWARD), "all", total)
        for number, (parameter, sample) in enumerate(self._before):
            owner = self._owners.of(parameter, f"parameter{number}")
            named = Where(PARAMETERS, OPTIMIZER, owner.model, owner.module)
            rows.add(named, [(owner.name, local_part(parameter))], PARAMETER)
            after = _sample(parameter)
            if after is None or sample is None or after.shape != sample.shape:
                continue
            change = after.float() - sample.float()
            rows.add(Where(UPDATE, OPTIMIZER, owner.model, owner.module), [(owner.name, change)], PARAMETER)
        for owner, buffer in self._owners.statistics():
            rows.add(Where(BUFFERS, OPTIMIZER, owner.model, owner.module), [(owner.name, buffer)], "buffer")
        if self._scaler is not None:
            scale = scale_of(self._scaler)
            rows.divide(OUTPUT_GRADIENT, scale)
            rows.add_number(Where(SCALE, OPTIMIZER), scale)
        seconds = time.perf_counter() - self._began
        is_skipped = self._scaler is not None and is_skipping(self._scaler)
        rows.add_arguments(Where(STEP, OPTIMIZER), [("seconds", round(seconds, 6)), ("skipped", is_skipped)])
        rows.finish(self._step)
        self.watched += 1


def _sample(parameter: torch.Tensor) -> torch.Tensor | None:
    """A copy of it, or of elements of it that are evenly spread; None: it can't be read."""
    here = local_part(parameter)
    if why_unreadable(here):
        return None
    flat = here.detach().reshape(-1)
    return flat[:: -(-flat.numel() // _SAMPLE) or 1].clone()


def _tensors_in(answer: Any) -> Iterator[torch.Tensor]:
    """Those of a tensor, list, dictionary, or an object that has them as fields."""
    if isinstance(answer, torch.Tensor):
        yield answer
    elif isinstance(answer, dict):
        for each in answer.values():
            yield from _tensors_in(each)
    elif isinstance(answer, (list, tuple)):
        for each in answer:
            yield from _tensors_in(each)
    elif hasattr(answer, "__dataclass_fields__"):
        for name in answer.__dataclass_fields__:
            yield from _tensors_in(getattr(answer, name, None))
