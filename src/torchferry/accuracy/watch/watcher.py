"""Watches a training through hooks of modules, tensors and optimizers; between the watched steps there are none."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.weak import WeakTensorKeyDictionary

from torchferry.accuracy.model import (
    Kept,
    RecordHeader,
)
from torchferry.accuracy.record.layout import host_devices
from torchferry.accuracy.record.modules import tensors_in
from torchferry.accuracy.record.outputs import RecordOutput, file_of
from torchferry.accuracy.record.program import RecordingPart, header_of, rank_and_world
from torchferry.accuracy.record.settings import WatchSettings
from torchferry.accuracy.watch.rows import (
    BUFFERS,
    GRADIENT,
    GRADIENT_NORM,
    GROUP_NORM,
    LEARNING_RATE,
    LOSS,
    MODULE,
    OUTPUT_GRADIENT,
    PARAMETERS,
    SCALE,
    SECONDS,
    SKIPPED,
    STEP,
    TIME,
    UPDATE,
)
from torchferry.accuracy.watch.step_rows import StepRows, Where
from torchferry.errors import RunError
from torchferry.observe.modes import has_compiled, unobserved
from torchferry.observe.operators import local_part, why_unreadable
from torchferry.observe.patching import Patches
from torchferry.observe.steps import (
    StepCounter,
    is_outermost_step,
    is_skipping,
    scale_of,
    unwatch_scalers,
    watch_scalers,
)
from torchferry.observe.where import BACKWARD, FORWARD, OPTIMIZER, PARAMETER, ProgramSite, Whereabouts
from torchferry.text import Text

# Whose a parameter or buffer is: the names of models and modules that have been called.

_STATISTICS = "running_"  # as the buffers of every normalisation are called
_WRAPPED = "module."  # in the names of what DistributedDataParallel holds


class Owner(NamedTuple):
    """Where a tensor is in the program."""

    model: str
    module: str
    name: str


class Owners:
    """Learns of modules as they are called, the inner ones first."""

    def __init__(self) -> None:
        self._parameters: Any = WeakTensorKeyDictionary()  # -> Owner
        self._known: set[int] = set()  # modules; they are kept by their models
        self._modules: dict[tuple[str, str], torch.nn.Module] = {}

    def learn(self, module: torch.nn.Module, site: ProgramSite) -> None:
        """Learn the names of the parameters and buffers of a module that was called there."""
        if id(module) in self._known:
            return
        self._known.add(id(module))
        path = path_of(module, site)
        for inner, part in module.named_modules():
            whole = ".".join(filter(None, (path, inner.removeprefix(_WRAPPED))))
            self._modules.setdefault((site.model, whole), part)
            self._learn_parameters(part, site.model, whole)

    def of(self, parameter: torch.Tensor, unnamed: str) -> Owner:
        """Whose it is; of what no module has, this name."""
        if parameter not in self._parameters:  # sharding puts others in their places while a module is called
            for (model, path), module in self._modules.items():
                self._learn_parameters(module, model, path)
            self._parameters.setdefault(parameter, Owner("", "", unnamed))
        owner: Owner = self._parameters[parameter]
        return owner

    def _learn_parameters(self, module: torch.nn.Module, model: str, path: str) -> None:
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter not in self._parameters:
                self._parameters[parameter] = Owner(model, path, name)

    def parameters(self) -> Iterator[torch.Tensor]:
        """All parameters of the modules that were called."""
        return iter(list(self._parameters.keys()))

    def statistics(self) -> Iterator[tuple[Owner, torch.Tensor]]:
        """The buffers that normalisations keep their statistics in."""
        seen = set()
        for (model, path), module in list(self._modules.items()):
            for name, buffer in module._buffers.items():
                if buffer is None or id(buffer) in seen or not name.startswith(_STATISTICS):
                    continue
                if buffer.is_floating_point():
                    seen.add(id(buffer))
                    yield Owner(model, path, name), buffer


def path_of(module: torch.nn.Module, site: ProgramSite) -> str:
    """Its path in the model; "" for the model itself, which goes by its type elsewhere."""
    return "" if site.module == type(module).__name__ else site.module


_MOST_CALLS = 16  # of one module in a step: a recurrent one is called for each word
_MOST_TENSORS = 8  # of one answer
_TOGETHER = 64  # parameters: their changes are in memory at the same time
_SAMPLE = 1 << 20  # elements of a parameter that are copied to see how they change


class Watcher:
    """Watches one process. Call `begin` when the first step begins, `next_step` after each, `stop` at the end."""

    def __init__(self, path: Path, header: RecordHeader, every: int, on_host: frozenset[str]) -> None:
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
        # parameters, and samples from before the step; None: it can't be read
        self._before: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        self._groups: list[tuple[Where, slice]] = []  # of optimizers, and which calls are their gradients
        self._always = [register_optimizer_step_pre_hook(self._before_optimizer)]
        self._backward = torch.autograd.backward
        watch_scalers(self._loss_scaled)
        torch.autograd.backward = self._watching_backward(self._backward)

    def begin(self, step: int) -> None:
        """Watch this step, if it is one of those."""
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
        self._groups = []
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
            found = [(f"output_{place}", tensor) for place, tensor in enumerate(tensors_in(answer))]
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

    def _watching_backward(self, original: Any) -> Any:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._step and torch._C._current_graph_task_id() == -1:
                with self._unharmed():
                    losses = [self._scaled.get(tensor, tensor) for tensor in tensors_in(tensors)]
                    named = [(f"output_{place}", loss) for place, loss in enumerate(losses)]
                    if named:
                        self.rows.add(Where(LOSS, FORWARD), named)
            return original(tensors, *args, **kwargs)

        return backward

    def _before_optimizer(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if not self._step or not is_outermost_step():
            return
        with self._unharmed():
            unscale = getattr(optimizer, "grad_scale", None)  # optimizers that take the scale out themselves
            for number, group in enumerate(optimizer.param_groups):
                rate = Where(LEARNING_RATE, OPTIMIZER, type(optimizer).__name__, f"group{number}")
                self.rows.add_number(rate, float(group.get("lr", math.nan)))
                first = self.rows.waiting
                with self.rows.gathering():
                    for place, parameter in enumerate(group["params"]):
                        self._gradient_of(parameter, f"group{number}.{place}", unscale)
                samples = _copies(list(map(_sample, group["params"])))
                self._before += zip(group["params"], samples, strict=True)
                norm = Where(GROUP_NORM, BACKWARD, rate.model, rate.module)
                self._groups.append((norm, slice(first, self.rows.waiting)))

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
        for where, which in self._groups if len(self._groups) > 1 else ():
            if (of_group := rows.totals(GRADIENT, which)) is not None:
                rows.add_statistics(where, "all", of_group)
        for first in range(0, len(self._before), _TOGETHER):
            self._parameters(first, self._before[first : first + _TOGETHER])
        with rows.gathering():
            self._buffers()
        if self._scaler is not None:
            scale = scale_of(self._scaler)
            rows.divide(OUTPUT_GRADIENT, scale)
            rows.add_number(Where(SCALE, OPTIMIZER), scale)
        seconds = time.perf_counter() - self._began
        is_skipped = self._scaler is not None and is_skipping(self._scaler)
        ended = (SECONDS, round(seconds, 6)), (TIME, round(time.time(), 3)), (SKIPPED, is_skipped)
        rows.add_arguments(Where(STEP, OPTIMIZER), ended)
        rows.finish(self._step)
        self.watched += 1

    def _parameters(self, first: int, parameters: Sequence[tuple[torch.Tensor, torch.Tensor | None]]) -> None:
        """Some parameters as they are after the step, and how it has changed them."""
        changed: list[tuple[Owner, torch.Tensor, torch.Tensor]] = []
        with self.rows.gathering():
            for number, (parameter, before) in enumerate(parameters, first):
                owner = self._owners.of(parameter, f"parameter{number}")
                where = Where(PARAMETERS, OPTIMIZER, owner.model, owner.module)
                self.rows.add(where, [(owner.name, local_part(parameter))], PARAMETER)
                after = _sample(parameter)
                if after is not None and before is not None and after.shape == before.shape:
                    changed.append((owner, after, before))
            changes = _changes([each[1] for each in changed], [each[2] for each in changed])
            for (owner, _, _), change in zip(changed, changes, strict=True):
                self.rows.add(
                    Where(UPDATE, OPTIMIZER, owner.model, owner.module), [(owner.name, change)], PARAMETER
                )

    def _buffers(self) -> None:
        for owner, buffer in self._owners.statistics():
            self.rows.add(
                Where(BUFFERS, OPTIMIZER, owner.model, owner.module), [(owner.name, buffer)], "buffer"
            )


def _sample(parameter: torch.Tensor) -> torch.Tensor | None:
    """It, or elements of it that are evenly spread, in its own memory if that can be; None: it can't be read."""
    here = local_part(parameter)
    if why_unreadable(here):
        return None
    flat = here.detach().reshape(-1)
    return flat[:: -(-flat.numel() // _SAMPLE) or 1]


def _copies(samples: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Copies of them; those of a device in few launches."""
    found = [None if sample is None or sample.device.type != "cpu" else sample.clone() for sample in samples]
    places = [place for place, sample in enumerate(samples) if sample is not None and found[place] is None]
    there = [sample for sample in (samples[place] for place in places) if sample is not None]
    for place, copy in zip(places, torch._foreach_mul(there, 1) if there else (), strict=True):
        found[place] = copy
    return found


def _changes(after: list[torch.Tensor], before: list[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Differences in single precision at least; those of a device in few launches."""
    if all(sample.dtype == torch.float32 and sample.device.type != "cpu" for sample in (*after, *before)):
        return torch._foreach_sub(after, before) if after else ()
    return [mine.float() - other.float() for mine, other in zip(after, before, strict=True)]


# The watching of a program, as a process of it does its part; other parts are in accuracy/record/program.py.


class WatchPart(RecordingPart):
    """Watches the training of a process, into its file."""

    def __init__(self, settings: WatchSettings) -> None:
        every = settings.every
        self._output = RecordOutput(settings, *rank_and_world())
        self._began = time.monotonic()
        self._steps = 0
        selected = f"watched at step 1 and each {every}th" if every > 1 else ""
        header = header_of(Kept.STATISTICS, settings, selected=selected)
        self._watcher = Watcher(self._output.path, header, every, host_devices())

    def start(self, step: int) -> None:
        self._watcher.begin(step)

    def next_step(self, step: int, updates: int) -> None:
        self._steps = step - 1
        watched = self._watcher.watched
        self._watcher.next_step(step)
        if self._watcher.watched != watched:
            self._tell()

    def stop(self) -> None:
        self._watcher.stop(("compiled",) if has_compiled() else ())
        self._tell(is_over=True)

    def abandon(self) -> None:
        self._watcher.leave()

    def out_of_sight(self) -> AbstractContextManager[Any]:
        return self._watcher.out_of_sight()

    def _tell(self, is_over: bool = False) -> None:
        rows = self._watcher.rows
        self._output.tell(
            is_over=is_over,
            steps=self._steps,
            calls=rows.calls,
            nbytes=rows.writer.nbytes,
            raw_nbytes=rows.writer.nbytes,
            seconds=time.monotonic() - self._began,
            problem=rows.writer.failed or self._watcher.failed,
            notes=("compiled",) if is_over and has_compiled() else (),
        )


# Watches a block of code, for programs that ask for it themselves.


@contextmanager
def watched_block(path: Path, every: int) -> Iterator[Watcher]:
    """The steps of optimizers inside of it are counted from 1."""
    if every < 1:
        raise RunError(
            Text(
                f"watching: every={every} is not a number of steps; give 1 or more",
                f"监视：every={every} 不是合法的步数；请给出不小于 1 的整数",
            )
        )
    header = header_of(Kept.STATISTICS)
    watcher = Watcher(file_of(path, header.rank, header.world), header, every, host_devices())
    patches = Patches()
    try:
        StepCounter(lambda step: watcher.next_step(step + 1)).watch(patches)
        watcher.begin(1)
        yield watcher
    finally:
        patches.take_back()
        watcher.stop()
