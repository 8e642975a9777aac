"""Ends a program after so many optimizer steps, without an error: a trial of a long training."""

from __future__ import annotations

import os

from torchferry.launch.settings import StepLimit
from torchferry.observe.patching import Patches
from torchferry.observe.program import EarlyEnd
from torchferry.observe.steps import StepCounter


def start(settings: StepLimit) -> None:
    """Count from now on."""
    process, end = os.getpid(), EarlyEnd()

    def step_ended(_step: int) -> None:
        if counter.updates >= settings.steps and os.getpid() == process:
            end.ask()

    counter = StepCounter(step_ended)
    counter.watch(Patches())
    os.register_at_fork(after_in_child=counter.begin_anew)
