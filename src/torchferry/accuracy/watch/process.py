"""Watches a user's program, as a process of it does its part; other parts are in accuracy/record/program.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from torchferry.accuracy.model import Kept
from torchferry.accuracy.record.layout import host_devices
from torchferry.accuracy.record.outputs import RecordOutput, file_of
from torchferry.accuracy.record.program import RecordingPart, header_of, rank_and_world
from torchferry.accuracy.record.settings import WatchSettings
from torchferry.accuracy.watch.watcher import Watcher
from torchferry.errors import RunError
from torchferry.observe.modes import has_compiled
from torchferry.observe.patching import Patches
from torchferry.observe.steps import StepCounter


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
            nbytes=rows.nbytes,
            raw_nbytes=rows.nbytes,
            seconds=time.monotonic() - self._began,
            problem=rows.failed or self._watcher.failed,
            notes=("compiled",) if is_over and has_compiled() else (),
        )


# Watches a block of code, for programs that ask for it themselves.


@contextmanager
def watched_block(path: Path, every: int) -> Iterator[Watcher]:
    """The steps of optimizers inside of it are counted from 1."""
    if every < 1:
        raise RunError(f"watching: every={every}; it is a number of steps, from 1")
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
