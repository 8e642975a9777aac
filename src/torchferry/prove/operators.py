"""Turns the operator recorder on for one optimizer step of this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from torchferry.observe.entrance import Entrance
from torchferry.observe.steps import is_outermost_step
from torchferry.observe.where import watch_optimizers
from torchferry.prove.operators_record import OperatorRecorder
from torchferry.prove.operators_trace import SUFFIX
from torchferry.prove.recorder import current_rank
from torchferry.prove.settings import ProofSettings


def start(settings: ProofSettings) -> None:
    """Record the operators between the step before and the end of the step that the settings name."""
    watch_optimizers()
    _Watch(settings).begin()


class _Watch:
    """Counts steps, as the steps' own recorder does."""

    def __init__(self, settings: ProofSettings) -> None:
        self._settings = settings
        self._steps = 0
        self._recorder: OperatorRecorder | None = None
        self._entrance = Entrance(self._record)

    def begin(self) -> None:
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        if self._settings.operators_step == 1:
            # Not at once: the building of the model, and of the libraries that it needs, is not part of the step.
            self._entrance.open()

    def _before_step(self, _optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if is_outermost_step():
            self._steps += 1
            if self._steps == self._settings.operators_step:
                self._record()

    def _after_step(self, _optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if not is_outermost_step():
            return
        if self._steps == self._settings.operators_step and self._recorder is not None:
            self._recorder.stop()
        elif self._steps == self._settings.operators_step - 1:
            self._record()

    def _record(self) -> None:
        self._entrance.close()
        wanted = self._settings.operators_rank
        if self._recorder is None and (wanted is None or wanted == current_rank()):
            self._recorder = OperatorRecorder(Path(self._settings.folder) / f"{os.getpid()}{SUFFIX}")
            self._recorder.start()
