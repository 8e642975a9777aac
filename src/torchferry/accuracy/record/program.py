"""Watches a user's program from `import torch` on: does its part in the steps that are wanted, then ends it."""

from __future__ import annotations

import importlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.errors import FerryError
from torchferry.observe.patching import Patches
from torchferry.observe.program import EarlyEnd, Entrance, around_loading, before_every_end, seed_all
from torchferry.observe.steps import StepCounter
from torchferry.readiness.capture.program import keep_out_of_tracing
from torchferry.sim import simulated


class RecordingPart(ABC):
    """What is done with the operators of the wanted steps. One object serves one process, from start to stop."""

    @abstractmethod
    def start(self, step: int) -> None:
        """This step begins: its first module is about to be called."""

    @abstractmethod
    def next_step(self, step: int, updates: int) -> None:
        """The one before has ended, this one begins; so many have changed weights. After the last one `stop` follows."""

    @abstractmethod
    def stop(self) -> None:
        """It was the last one, or the process ends; not called twice, nor without `start`."""

    @abstractmethod
    def abandon(self) -> None:
        """In a process that was forked while its parent was at work: leave the parent's files alone."""

    @abstractmethod
    def out_of_sight(self) -> AbstractContextManager[Any]:
        """What is called in it does not count: a DataLoader's work."""


def start(settings: RecordSettings) -> None:
    """Have the operators of this process looked at."""
    module, _, name = settings.looker.partition(":")
    WatchedProgram(settings, getattr(importlib.import_module(module), name)).begin()


class WatchedProgram:
    """One process of a program that is watched."""

    def __init__(self, settings: RecordSettings, make: Callable[[RecordSettings], RecordingPart]) -> None:
        self._settings = settings
        self._make = make
        self._part: RecordingPart | None = None  # None: not at work
        self._process = os.getpid()
        self._delay = 0  # steps by which the wanted ones begin later
        self._counter = StepCounter(self._step_ended)
        self._early_end = EarlyEnd()
        self._entrance = Entrance(self._start)
        self._patches = Patches()
        # stays while the process is to end: a program may catch what ends it, and go on
        self._counting = Patches()

    def begin(self) -> None:
        """Watch from now on, until enough steps are made or the process ends."""
        if self._settings.seed is not None:
            seed_all(self._settings.seed)
        patches = self._patches
        self._counter.watch(self._counting)
        around_loading(patches, self.out_of_sight)
        keep_out_of_tracing(patches, self.out_of_sight)
        os.register_at_fork(after_in_child=self._begin_anew)
        before_every_end(patches, self._end)
        patches.add(self._entrance.close)
        if self._settings.whole:
            self._start()
        elif self._settings.first_step == 1:
            self._entrance.open()

    def _begin_anew(self) -> None:
        """In a process that has just been forked: what it calls is its own. Where its parent is at work already, it
        is a helper of the parent's."""
        self._process = os.getpid()
        if self._part is not None:
            part, self._part = self._part, None
            part.abandon()
        self._counter.begin_anew()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """What is called in it does not count: modules that transform data are no models, traces no training."""
        part = self._part
        if part is not None:
            with part.out_of_sight():
                yield
            return
        was_open = self._entrance.close()
        try:
            yield
        finally:
            if was_open:
                self._entrance.open()

    def _start(self) -> None:
        if os.getpid() != self._process or torch.utils.data.get_worker_info() is not None:
            return
        rank = self._settings.rank
        if rank is not None and rank != rank_and_world()[0]:
            return
        try:
            part = self._make(self._settings)
        except FerryError as error:
            print(f"torchferry: {error.shown}", file=sys.stderr, flush=True)
            raise SystemExit(error.exit_code) from None
        self._part = part
        part.start(self._counter.number)

    def _step_ended(self, step: int) -> None:
        if os.getpid() != self._process:
            return
        if self._part is not None:
            self._part.next_step(step + 1, self._counter.updates)
        if step == self._settings.first_step and self._entrance.is_open:
            # Its modules were called before the step before was known to be over: the next one is whole.
            self._delay = 1
        last = self._settings.last_step
        if last is not None and step >= last + self._delay:
            self._end()
            if not self._settings.keep_going:
                self._early_end.ask()
            self._counting.take_back()
        elif step + 1 == self._settings.first_step:
            self._entrance.open()

    def _end(self) -> None:
        """In this process nothing is watched any more; what was watched is kept."""
        if os.getpid() != self._process:
            return
        part, self._part = self._part, None
        try:
            if part is not None:
                part.stop()
        finally:
            self._patches.take_back()


def rank_and_world() -> tuple[int, int]:
    """Rank and number of processes: as torch.distributed says if the program has asked it already, else as torchrun does."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    environment = os.environ
    try:
        return int(environment.get("RANK", 0)), int(environment.get("WORLD_SIZE", 1))
    except ValueError:
        return 0, 1


def processes_here() -> int:
    """How many processes of the program there are on this machine: as torchrun says; else all of them are."""
    try:
        return int(os.environ["LOCAL_WORLD_SIZE"])
    except (KeyError, ValueError):
        return rank_and_world()[1]


def header_of(
    kept: Kept, settings: RecordSettings | None = None, *, replayed: str = "", selected: str = ""
) -> RecordHeader:
    """What a record of this process is of. Without settings, the program has asked for it itself."""
    if settings is None:
        now = simulated()
        vendor = "" if now is None else now.vendor.name
        settings = RecordSettings("", program=" ".join(sys.argv), vendor=vendor, simulated=bool(vendor))
    device = settings.device or device_in_use()
    in_part = "" if settings.slicing is None else settings.slicing.describe()
    return RecordHeader(
        kept, settings.program, device, torch.__version__, *rank_and_world(), settings.vendor, settings.simulated,
        replayed, selected, in_part=in_part, modules_only=settings.modules_only, options=settings.again,
    )  # fmt: skip


def device_in_use() -> str:
    """The type of the device that a program most likely computes on."""
    now = simulated()
    if now is not None:
        return now.vendor.device_type
    return "cuda" if torch.cuda.is_available() else "cpu"


def shares_randomness() -> bool:
    """Whether simulated devices draw from the CPU's generator."""
    now = simulated()
    return now is not None and now.settings.shared_randomness
