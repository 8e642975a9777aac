"""Captures the operators of a user's program, from `import torch` until its optimizers have stepped."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from torchferry.files.aside import write_whole
from torchferry.observe.early_end import EarlyEnd
from torchferry.observe.loading import around_loading
from torchferry.observe.patching import Patches
from torchferry.observe.steps import hook_steps, is_outermost_step, remember_optimizers
from torchferry.ops import capture_json
from torchferry.ops.capture.choices import DeviceChoices
from torchferry.ops.capture.ending import before_every_end
from torchferry.ops.capture.mode import CapturingMode, is_data_worker
from torchferry.ops.capture.reach import keep_out_of_tracing, reach_threads
from torchferry.ops.capture.settings import SUFFIX, CaptureSettings, capture_settings_in
from torchferry.ops.capture.warming import warm_up
from torchferry.ops.model import Capture, Use

_CPU = "cpu"
_META = "meta"


def capture_from_environment(environment: Mapping[str, str]) -> None:
    """Start if the environment asks for it."""
    settings = capture_settings_in(environment)
    if settings is not None:
        ProgramCapture(settings).begin()


class ProgramCapture:
    """The capture of one process."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._mode = CapturingMode(_wait_for(settings.device))
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._steps: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        self._most_steps = 0
        self._process = os.getpid()
        self._began = time.monotonic()
        self._is_over = False
        self._early_end = EarlyEnd()
        self._choices = DeviceChoices()
        self._patches = Patches()
        self._counting = (
            Patches()
        )  # stays until the process ends: a program may catch what ends it, and go on

    def begin(self) -> None:
        """From now on, until enough steps are made or the process ends."""
        patches = self._patches
        try:
            if not self._settings.device:
                warm_up()
                patches.add(self._choices.take_back)
                self._choices.make()
            remember_optimizers(patches, self._optimizers)
            hook_steps(self._counting, self._before_step, self._after_step)
            around_loading(patches, lambda: _loading_data(self._mode))
            reach_threads(patches, self._mode, lambda _thread: self._mode.is_at_work)
            keep_out_of_tracing(patches, self._mode)
            os.register_at_fork(after_in_child=self._begin_anew)
            before_every_end(patches, self._end)
            patches.add(self._mode.switch_off)
            self._mode.switch_on()
        except BaseException:
            patches.take_back()
            self._counting.take_back()
            raise

    def _begin_anew(self) -> None:
        """In a process that has just been forked: what it calls is its own."""
        if not self._is_over:
            self._process = os.getpid()
            self._steps.clear()
            self._most_steps = 0
            self._mode.begin_anew()

    def _before_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        """An optimizer that begins anew shows that the others have had their turn, those that step seldom aside."""
        if is_outermost_step() and self._has_stepped(optimizer):
            self._stop()

    def _after_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if not is_outermost_step():
            return
        self._steps[optimizer] = self._steps.get(optimizer, 0) + 1
        self._most_steps = max(self._most_steps, self._steps[optimizer])
        if all(map(self._has_stepped, list(self._optimizers))):
            self._stop()

    def _has_stepped(self, optimizer: torch.optim.Optimizer) -> bool:
        wanted = self._settings.steps
        return wanted is not None and self._steps.get(optimizer, 0) >= wanted

    def _stop(self) -> None:
        if os.getpid() != self._process:
            return
        self._end()
        self._early_end.ask()

    def _end(self) -> None:
        if self._is_over or os.getpid() != self._process or is_data_worker():
            return
        self._is_over = True
        self._patches.take_back()
        uses = tuple(use for use in self._mode.uses() if not _is_of_shapes_alone(use))
        if uses:
            self._write(
                Capture(
                    program=self._settings.program,
                    origin="program",
                    device=self._settings.device or _CPU,
                    torch=torch.__version__,
                    steps=self._most_steps,
                    seconds=round(time.monotonic() - self._began, 6),
                    uses=uses,
                    modules=self._mode.modules(),
                    notes=tuple(sorted(self._mode.notes)),
                )
            )

    def _write(self, capture: Capture) -> None:
        """Whole or not at all."""
        path = Path(self._settings.folder) / f"{os.environ.get('RANK', '')}-{os.getpid()}{SUFFIX}"
        write_whole(path, capture_json.dump(capture).encode())


def _is_of_shapes_alone(use: Use) -> bool:
    """What a program computes on the meta device, or with fake tensors, no device ever sees."""
    specs = [*use.signature.inputs, *use.signature.outputs]
    return bool(specs) and all(spec.device == _META for spec in specs)


def _wait_for(device: str) -> Callable[[], None] | None:
    """What waits until a device has computed; None where the CPU computes."""
    return getattr(getattr(torch, device, None), "synchronize", None) if device else None


@contextmanager
def _loading_data(mode: CapturingMode) -> Iterator[None]:
    mode.is_loading_data = True
    try:
        yield
    finally:
        mode.is_loading_data = False
