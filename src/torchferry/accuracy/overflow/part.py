"""The check of a user's program, as a process of it does its part; other parts are in accuracy/record/program.py."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.model import Header, Kept
from torchferry.accuracy.overflow.calls import CheckedCall
from torchferry.accuracy.overflow.check import CheckOptions, OverflowCheck
from torchferry.accuracy.overflow.mode import CheckingMode
from torchferry.accuracy.overflow.model import SUFFIX, End, Event, Findings, dump
from torchferry.accuracy.overflow.saving import save_call
from torchferry.accuracy.record.outputs import Output
from torchferry.accuracy.record.part import device_in_use
from torchferry.accuracy.record.program import rank_and_world
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.files.aside import write_whole
from torchferry.observe.early_end import EarlyEnd
from torchferry.observe.scalers import unwatch_scalers, watch_scalers

_CPU = "cpu"
_FOUND_CODE = 1  # the launchers of other processes end those, too: they would wait for this one for ever


def make_part(settings: RecordSettings) -> OverflowPart:
    """What checks this process."""
    return OverflowPart(settings)


class OverflowPart:
    """One process. Options: last, half, strict, steps (that an optimizer made, skipped ones not counted), save."""

    def __init__(self, settings: RecordSettings) -> None:
        options = settings.options
        self._settings = settings
        self._rank, self._world = rank_and_world()
        self._wanted: int | None = options.get("steps")
        self._steps = 0
        self._on_host = frozenset({_CPU, settings.device} if settings.simulated else {_CPU})
        check = CheckOptions(
            options.get("last", 20), options.get("half", False), options.get("strict", False), self._on_host
        )
        self._check = OverflowCheck(check, self._save, self._found)
        self._mode = CheckingMode(self._check)
        self._path: Path | None = None  # of the record, once there is one
        self._end = End.UNFINISHED
        self._early_end: EarlyEnd | None = None

    def start(self, step: int) -> None:
        """The first step begins."""
        self._mode.step = step
        watch_scalers(self._check.scaled)
        self._write()
        self._mode.switch_on()

    def next_step(self, step: int) -> None:
        """Another one."""
        if self._early_end is not None:  # the program has caught what was to end it
            self._early_end.ask()
        self._mode.step = step
        is_skipped = self._check.settle()
        self._steps += not is_skipped
        if self._wanted is not None and self._steps >= self._wanted:
            self._finish(End.STEPS)
            self._ask_for_end(EarlyEnd())
        self._write()

    def stop(self) -> None:
        """The process ends."""
        self._finish(End.PROGRAM)

    def abandon(self) -> None:
        """In a forked process."""
        self._mode.take_off()
        self._mode.where.unwatch()
        self._settings = replace(self._settings, folder="", output="")
        self._path = None

    def out_of_sight(self) -> AbstractContextManager[Any]:
        """What is called in it is not checked."""
        return self._mode.out_of_sight()

    def findings(self) -> Findings:
        """What was found so far."""
        return Findings(
            self._settings.program,
            self._settings.device or device_in_use(),
            torch.__version__,
            self._rank,
            self._world,
            self._steps,
            self._check.operators,
            self._end,
            bool(self._settings.options.get("half")),
            tuple(self._check.events),
            self._check.skipped_steps,
            self._check.largest,
            self._check.underflow,
            tuple(sorted(self._mode.notes)),
        )

    def _finish(self, end: End) -> None:
        if self._end is not End.UNFINISHED:
            return
        self._end = end
        with suppress(SystemExit):  # it ends anyway
            self._check.leave()
        self._mode.switch_off()
        unwatch_scalers(self._check.scaled)
        if self._path is not None and self.findings().first is None:
            self._path.unlink(missing_ok=True)
        self._write()

    def _found(self, event: Event) -> None:
        if self._settings.keep_going or self._end is not End.UNFINISHED:
            self._write()
            return
        self._end = End.FOUND
        self._mode.switch_off()
        unwatch_scalers(self._check.scaled)
        self._write()
        self._ask_for_end(EarlyEnd(_FOUND_CODE))

    def _ask_for_end(self, end: EarlyEnd) -> None:
        self._early_end = end
        end.ask()

    def _save(self, call: CheckedCall) -> str:
        if not self._settings.output:
            return ""
        if self._path is None:
            self._path = Output(self._settings, self._rank, self._world).path
        header = Header(
            Kept.TENSORS,
            self._settings.program,
            self._settings.device or device_in_use(),
            torch.__version__,
            self._rank,
            self._world,
            self._settings.vendor,
            self._settings.simulated,
        )
        try:
            save_call(self._path, header, call, self._mode.where.role_of, self._on_host)
        except OSError as error:
            print(f"torchferry: {self._path}: {error.strerror}; the inputs are not saved", file=sys.stderr)
            return ""
        return str(self._path)

    def _write(self) -> None:
        """Whole or not at all."""
        if not self._settings.folder:
            return
        path = Path(self._settings.folder) / f"{self._rank}-{os.getpid()}{SUFFIX}"
        write_whole(path, dump(self.findings()).encode())
