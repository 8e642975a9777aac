"""Captures the operators of a user's program, from `import torch` until its optimizers have stepped."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from torchferry.files.aside import write_whole
from torchferry.observe.modes import ObservingMode
from torchferry.observe.patching import Patches
from torchferry.observe.program import EarlyEnd, around_loading, before_every_end
from torchferry.observe.steps import StepCounter
from torchferry.readiness import capture_json
from torchferry.readiness.capture.choices import DeviceChoices
from torchferry.readiness.capture.mode import CapturingMode, is_data_worker
from torchferry.readiness.capture.settings import SUFFIX, CaptureSettings
from torchferry.readiness.model import Capture


def reach_threads(
    patches: Patches, mode: ObservingMode, is_wanted: Callable[[threading.Thread], bool]
) -> None:
    """Modes are a thread's own: put this one on in threads that the program starts, if they are wanted then."""
    original = threading.Thread.start

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        run = self.run

        def watched() -> None:
            mode.__enter__()  # type: ignore[no-untyped-call]
            try:
                run()
            finally:
                mode.take_off()  # unless the last step has done so

        if is_wanted(self):
            self.run = watched  # type: ignore[method-assign]
        original(self)

    patches.replace(threading.Thread, "start", start)


def keep_out_of_tracing(patches: Patches, out_of_sight: Callable[[], AbstractContextManager[Any]]) -> None:
    """torch.jit.trace records wrong graphs while any mode is on. What it has made is seen when it runs."""

    def unseen(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with out_of_sight():
                return function(*args, **kwargs)

        return call

    for name in ("trace", "trace_module"):
        patches.replace(torch.jit, name, unseen(getattr(torch.jit, name)))


def warm_up() -> None:
    """Make the CPU's libraries ready, so that their start does not count as the time of the first operators: start
    threads, and what convolutions and products of matrices need; draws no random numbers.

    Autograd's own threads are not started: a program that forks afterwards could not train in its children.
    """
    picture, kernel = torch.ones(1, 8, 16, 16), torch.ones(8, 8, 3, 3)
    result = torch.conv2d(picture, kernel, padding=1)
    sizes = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
    torch.ops.aten.convolution_backward(result, picture, kernel, None, *sizes)
    rows = result.flatten(2)
    torch.bmm(rows, rows.transpose(1, 2)).sum()


_CPU = "cpu"
_META = "meta"


def start(settings: CaptureSettings) -> None:
    """Capture the operators of this process as the settings say."""
    ProgramCapture(settings).begin()


class ProgramCapture:
    """The capture of one process."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._mode = CapturingMode(settings.device)
        self._counter = StepCounter(self._step_ended)
        self._process = os.getpid()
        self._began = time.monotonic()
        self._is_over = False
        self._early_end = EarlyEnd()
        self._choices = DeviceChoices()
        self._patches = Patches()
        # stays until the process ends: a program may catch what ends it, and go on
        self._counting = Patches()

    def begin(self) -> None:
        """Capture from now on, until enough steps are made or the process ends."""
        patches = self._patches
        try:
            if not self._settings.device:
                warm_up()
                patches.add(self._choices.take_back)
                self._choices.make()
            self._counter.watch(patches, self._counting)
            around_loading(patches, self._mode.loading_data)
            reach_threads(patches, self._mode, lambda _thread: self._mode.is_at_work)
            keep_out_of_tracing(patches, self._mode.out_of_sight)
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
            self._counter.begin_anew()
            self._mode.begin_anew()

    def _step_ended(self, _step: int) -> None:
        """What a GradScaler has left out called no operator of an optimizer."""
        wanted = self._settings.steps
        if wanted is not None and self._counter.updates >= wanted and os.getpid() == self._process:
            self._end()
            self._early_end.ask()

    def _end(self) -> None:
        if self._is_over or os.getpid() != self._process or is_data_worker():
            return
        self._is_over = True
        self._patches.take_back()
        # What a program computes on the meta device, or with fake tensors, no device ever sees.
        uses = tuple(
            use
            for use in self._mode.uses()
            if {spec.device for spec in (*use.signature.inputs, *use.signature.outputs)} != {_META}
        )
        if uses:
            capture = Capture(
                program=self._settings.program,
                origin="program",
                device=self._settings.device or _CPU,
                torch=torch.__version__,
                steps=self._counter.updates,
                seconds=round(time.monotonic() - self._began, 6),
                uses=uses,
                modules=self._mode.modules(),
                notes=tuple(sorted(self._mode.notes)),
            )
            path = Path(self._settings.folder) / f"{os.environ.get('RANK', '')}-{os.getpid()}{SUFFIX}"
            write_whole(path, capture_json.dump(capture).encode())
