"""Captures the operators of a user's program, from `import torch` until its optimizers have stepped."""

from __future__ import annotations

import atexit
import functools
import os
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from torchferry.observe.steps import is_outermost_step
from torchferry.ops import capture_json
from torchferry.ops.capture.choices import DeviceChoices
from torchferry.ops.capture.mode import CapturingMode
from torchferry.ops.capture.settings import SUFFIX, CaptureSettings, capture_settings_in
from torchferry.ops.capture.warming import warm_up
from torchferry.ops.model import Capture

_CPU = "cpu"


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

    def begin(self) -> None:
        """From now on, until enough steps are made or the process ends."""
        if not self._settings.device:
            warm_up()
            DeviceChoices().make()
        self._watch_optimizers()
        _tell_of_data(self._mode)
        atexit.register(self._end)
        self._mode.switch_on()

    def _watch_optimizers(self) -> None:
        original: Callable[..., None] = torch.optim.Optimizer.__init__
        known = self._optimizers

        @functools.wraps(original)
        def init(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            known.add(self)

        torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

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
        if not self._is_over and os.getpid() == self._process:
            self._end()
            raise SystemExit(0)  # not an Exception: `finally` blocks run, `except Exception` does not stop it

    def _end(self) -> None:
        if self._is_over or os.getpid() != self._process:
            return
        self._is_over = True
        self._mode.switch_off()
        uses = self._mode.uses()
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
        aside = path.with_suffix(".aside")
        aside.write_text(capture_json.dump(capture), "utf-8")
        aside.replace(path)


def _wait_for(device: str) -> Callable[[], None] | None:
    """What waits until a device has computed; None where the CPU computes."""
    return getattr(getattr(torch, device, None), "synchronize", None) if device else None


def _tell_of_data(mode: CapturingMode) -> None:
    """What a DataLoader of this process computes is the host's, on every machine."""
    from torch.utils.data import dataloader

    iterator: Any = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        mode.is_loading_data = True
        try:
            return original(self)
        finally:
            mode.is_loading_data = False

    iterator.__next__ = following
