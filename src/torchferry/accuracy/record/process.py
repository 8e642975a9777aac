"""Records a user's program, as a process of it does its part; other parts are in program.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import RecordHeader
from torchferry.accuracy.record.outputs import RecordOutput, file_of
from torchferry.accuracy.record.program import rank_and_world
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.replaying import ReplayingMode
from torchferry.accuracy.record.settings import RecordSettings, Selection
from torchferry.observe.patching import Patches
from torchferry.readiness.capture.program import reach_threads
from torchferry.sim.current import simulated

_EXAMPLES = 5
_CPU = "cpu"
_REPLICAS = "torch.nn.parallel.parallel_apply"


class RecordPart:
    """One process and its file."""

    def __init__(self, settings: RecordSettings) -> None:
        self._settings = settings
        rank, world = rank_and_world()
        self._golden = self._open_golden(rank, world)
        self._output = RecordOutput(settings, rank, world)
        self._began = time.monotonic()
        self._steps = 0
        self._is_at_work = False
        self._patches = Patches()
        selection = Selection(settings.modules, settings.operators, settings.phases)
        header = RecordHeader(
            settings.kept,
            settings.program,
            settings.device or device_in_use(),
            torch.__version__,
            rank,
            world,
            settings.vendor,
            settings.simulated,
            "" if self._golden is None else str(self._golden.path),
            selection.describe(),
            options=settings.again,
        )
        self._recorder = Recorder(self._output.path, header, selection, settings.first_step)
        self._replaying = (
            None
            if self._golden is None
            else ReplayingMode(self._golden, self._recorder.forget, shares_randomness())
        )

    def start(self, step: int) -> None:
        """The first step begins."""
        self._is_at_work = True
        reach_threads(
            self._patches, self._recorder.mode, lambda thread: self._is_at_work and _is_replica(thread)
        )
        self._recorder.start()
        if self._replaying is not None:
            self._replaying.switch_on()

    def next_step(self, step: int, updates: int) -> None:
        """One has ended."""
        self._steps += 1
        self._recorder.next_step()
        if self._replaying is not None:
            self._replaying.step += 1
        self._tell()

    def stop(self) -> None:
        """It was the last one, or the process ends in the middle of it."""
        self._leave_threads()
        if self._replaying is not None:
            self._replaying.switch_off()
        self._recorder.stop()
        self._tell(is_over=True)
        if self._golden is not None:
            self._golden.close()

    def abandon(self) -> None:
        """In a forked process."""
        self._leave_threads()
        if self._replaying is not None:
            self._replaying.switch_off()
        self._recorder.abandon()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """What is called in it is not recorded."""
        with ExitStack() as stack:
            if self._replaying is not None:
                stack.enter_context(self._replaying.out_of_sight())
            stack.enter_context(self._recorder.out_of_sight())
            yield

    def _leave_threads(self) -> None:
        self._is_at_work = False
        self._patches.take_back()

    def _open_golden(self, rank: int, world: int) -> Record | None:
        if not self._settings.replay:
            return None
        whole = Path(self._settings.replay)
        of_rank = file_of(whole, rank, world)
        return open_record(of_rank if of_rank.exists() else whole)

    def _tell(self, is_over: bool = False) -> None:
        recorder, replaying = self._recorder, self._replaying
        known: dict[str, object] = {}
        if replaying is not None:
            pairing = replaying.pairing
            known = {
                "paired": pairing.paired,
                "recorded": pairing.count,
                "unpaired": sum(pairing.unpaired.values()),
                "examples": tuple(name for name, _ in pairing.unpaired.most_common(_EXAMPLES)),
            }
        self._output.tell(
            is_over=is_over,
            steps=self._steps,
            calls=recorder.calls,
            nbytes=recorder.nbytes,
            seconds=round(time.monotonic() - self._began, 3),
            problem=recorder.failed,
            notes=recorder.notes,
            **known,
        )


def _is_replica(thread: threading.Thread) -> bool:
    """Whether a copy of a model computes in it, for DataParallel; other threads of a program are not its training."""
    return getattr(getattr(thread, "_target", None), "__module__", "") == _REPLICAS


def device_in_use() -> str:
    """The type of the device that a program most likely computes on."""
    now = simulated()
    if now is not None:
        return now.vendor.device_type
    return "cuda" if torch.cuda.is_available() else _CPU


def shares_randomness() -> bool:
    """Whether simulated devices draw from the CPU's generator."""
    now = simulated()
    return now is not None and now.settings.shared_randomness


def simulated_vendor() -> str:
    """Whose device is simulated here; "" if none is."""
    now = simulated()
    return "" if now is None else now.vendor.name
