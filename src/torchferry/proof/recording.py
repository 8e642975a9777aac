"""Starts recording in this process: seeds, and hooks where every training program passes. Nothing is printed."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.recorder import Recorder
from torchferry.observe.modes import unobserved
from torchferry.observe.patching import Patches
from torchferry.observe.program import Entrance, seed_all
from torchferry.observe.steps import StepCounter, scale_of, watch_scalers
from torchferry.observe.where import watch_optimizers
from torchferry.proof.operators import SUFFIX
from torchferry.proof.recorder import Namer, ProofRecorder, current_rank
from torchferry.proof.settings import IMPORTS_SUFFIX, ProofSettings, Weights, imported_from

_recorders: list[ProofRecorder] = []  # at most one; another one after a fork


def start(settings: ProofSettings) -> None:
    """Seed every generator and record from now on; doing it again does nothing."""
    if _recorders:
        return
    _recorders.append(ProofRecorder(settings))
    counter = _RecordingCounter()
    os.register_at_fork(after_in_child=lambda: _begin_anew(counter))
    seed_all(settings.seed)
    if settings.other_project:
        atexit.register(_name_imports, settings)
    if settings.operators_step:
        watch_optimizers()  # before the hook that ends the process after a step
        counter.operators = _OperatorsOfStep(settings)
    _record_backward()
    _notice_optimizers()
    counter.watch(Patches())  # for good
    watch_scalers(_loss_scaled)
    if settings.weights is not Weights.OWN:
        share_weights(settings)


def _name_imports(settings: ProofSettings) -> None:
    """Leave the names of files that were imported from the project of the other side."""
    found = imported_from(Path(settings.other_project), Path(settings.own_project))
    if found:
        Path(settings.folder, f"{os.getpid()}{IMPORTS_SUFFIX}").write_text("\n".join(found), "utf-8")


def _begin_anew(counter: StepCounter) -> None:
    """A forked process records for itself, into a file of its own."""
    _recorders[:] = [ProofRecorder(_recorders[0].settings)]
    counter.begin_anew()


def _record_backward() -> None:
    """`Tensor.backward` calls it as well. Calls from inside of one (checkpointing) are no losses."""
    original: Callable[..., None] = torch.autograd.backward
    running = threading.local()

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        if getattr(running, "now", False):
            original(tensors, *args, **kwargs)
            return
        given = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        # others are for PyTorch to refuse
        losses = [each for each in given if isinstance(each, torch.Tensor)]
        recorder = _recorders[0]
        recorder.backward(losses)
        running.now = True
        try:
            original(tensors, *args, **kwargs)
        finally:
            running.now = False
        if not recorder.is_complete():
            recorder.after_backward()
        if recorder.is_complete():
            raise SystemExit(0)

    torch.autograd.backward = backward


def _notice_optimizers() -> None:
    """A program that makes one steps by it; one that makes none updates its parameters by hand."""
    original: Any = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        _recorders[0].has_optimizer()
        original(self, *args, **kwargs)

    torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]


class _RecordingCounter(StepCounter):
    def __init__(self) -> None:
        super().__init__(self._tell_recorder)
        self.operators: _OperatorsOfStep | None = None

    def _begins(self, optimizer: torch.optim.Optimizer) -> None:
        if self.operators is not None:
            self.operators.optimizer_begins()
        if not _recorders[0].is_complete():
            _recorders[0].before_step(optimizer)
        super()._begins(optimizer)

    def _has_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        recorder = _recorders[0]
        if self.operators is not None:
            self.operators.optimizer_ends()
        if not recorder.is_complete():
            recorder.after_step(optimizer, self.number)
        if recorder.is_complete():
            raise SystemExit(0)  # not an Exception: `finally` blocks run, `except Exception` does not stop it
        super()._has_stepped(optimizer)

    def _leaves_out(self, optimizer: torch.optim.Optimizer) -> None:
        """Without a word of it, the steps would seem to be missing."""
        if not _recorders[0].is_complete():
            _recorders[0].skipped()
        super()._leaves_out(optimizer)

    def _tell_recorder(self, _step: int) -> None:
        _recorders[0].updates = self.updates
        if _recorders[0].is_complete():
            raise SystemExit(0)


def _loss_scaled(scaler: Any, loss: Any, scaled: Any) -> None:
    """The loss that a program prints is the one before a GradScaler scales it."""
    if isinstance(scaled, torch.Tensor) and scaled is not loss:
        _recorders[0].scaled(scaled, scale_of(scaler))


# Gives the migrated run the weights of the reference: for programs that draw them on the device.


def share_weights(settings: ProofSettings) -> None:
    """From now on, save or load what an optimizer is given: its parameters, and all else that their modules hold.

    The moment is the end of `Optimizer.add_param_group`, which every optimizer's constructor calls: the model is made
    by then and has not computed anything yet. The n-th group of a process gets what the n-th group of the process
    with the same rank had.
    """
    original: Any = torch.optim.Optimizer.add_param_group
    numbers = itertools.count()

    @functools.wraps(original)
    def add_param_group(self: torch.optim.Optimizer, param_group: dict[str, Any]) -> None:
        original(self, param_group)
        file = Path(settings.weights_folder) / f"rank{current_rank() or 0}-group{next(numbers)}.pt"
        with unobserved():
            here = _named_tensors(self.param_groups[-1]["params"])
            if settings.weights is Weights.SAVE:
                torch.save({name: each.detach().cpu() for name, each in here.items()}, file)
            elif file.exists():
                saved = torch.load(file, map_location="cpu", weights_only=True)
                for name, tensor in here.items():  # what does not fit is left, and the comparison will say so
                    if name in saved and saved[name].shape == tensor.shape:
                        tensor.detach().copy_(saved[name])

    torch.optim.Optimizer.add_param_group = add_param_group  # type: ignore[method-assign]


def _named_tensors(parameters: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    naming = Namer().name(parameters)
    own = {f"parameter {place}": parameter for place, parameter in enumerate(parameters)}
    others = {f"parameter {name}": each for name, each in naming.tensors("parameters")}
    return {**own, **others, **{f"buffer {name}": each for name, each in naming.tensors("buffers")}}


class _OperatorsOfStep:
    """Records the operators between the step before and the end of the step that the settings name. Told of each step
    before the recorder of steps is, which counts them."""

    def __init__(self, settings: ProofSettings) -> None:
        self._settings = settings
        self._recorder: Recorder | None = None
        self._entrance = Entrance(self._record)
        if settings.operators_step == 1:
            # Not at once: the building of the model, and of the libraries that it needs, is not part of the step.
            self._entrance.open()

    def optimizer_begins(self) -> None:
        if _recorders[0].steps + 1 == self._settings.operators_step:
            self._record()

    def optimizer_ends(self) -> None:
        number = _recorders[0].steps + 1
        if number == self._settings.operators_step and self._recorder is not None:
            self._recorder.stop()
        elif number == self._settings.operators_step - 1:
            self._record()

    def _record(self) -> None:
        self._entrance.close()
        wanted = self._settings.operators_rank
        if self._recorder is None and (wanted is None or wanted == current_rank()):
            self._recorder = operator_recorder(Path(self._settings.folder) / f"{os.getpid()}{SUFFIX}")
            self._recorder.start()


def operator_recorder(path: Path) -> Recorder:
    """What records operators for `proof/operators.py`, of one step, all that it calls."""
    header = RecordHeader(Kept.STATISTICS, program="", device="", torch=str(torch.__version__))
    return Recorder(path, header, sketches=True)
