"""Records a user's program, as a process of it does its part; other parts are in program.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.record.forecast import Forecast
from torchferry.accuracy.record.modules import ModuleRecorder
from torchferry.accuracy.record.outputs import RecordOutput, file_of
from torchferry.accuracy.record.program import (
    RecordingPart,
    header_of,
    processes_here,
    rank_and_world,
    shares_randomness,
)
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.replaying import ReplayingMode
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.observe.patching import Patches
from torchferry.readiness.capture.program import reach_threads

_EXAMPLES = 5
_REPLICAS = "torch.nn.parallel.parallel_apply"


class RecordPart(RecordingPart):
    """Records the operators of a process into its file."""

    def __init__(self, settings: RecordSettings) -> None:
        self._settings = settings
        self._golden = self._open_golden()
        self._output = RecordOutput(settings, *rank_and_world())
        self._began = time.monotonic()
        self._steps = 0
        self._is_at_work = False
        self._patches = Patches()
        selection = settings.selection()
        replayed = "" if self._golden is None else str(self._golden.path)
        header = header_of(settings.kept, settings, replayed=replayed, selected=selection.describe())
        make = ModuleRecorder if settings.modules_only else Recorder
        most = _share_of(settings.limit)
        self._recorder = make(
            self._output.path, header, selection, settings.first_step, most=most, slicing=settings.slicing
        )
        self._forecast = Forecast(self._output.path, settings.recorded_steps)
        self._recorder.when_forward_ended(self._forecast.forward_ended)
        self._selection = selection
        self._replaying = None
        if self._golden is not None and isinstance(self._recorder, Recorder):
            self._replaying = ReplayingMode(self._golden, self._recorder.forget, shares_randomness())

    def start(self, step: int) -> None:
        self._is_at_work = True
        if isinstance(self._recorder, Recorder):
            reach_threads(self._patches, self._recorder, self._has_replica)
        self._recorder.start()
        if self._replaying is not None:
            self._replaying.switch_on()

    def next_step(self, step: int, updates: int) -> None:
        self._steps += 1
        if self._selection.has_step(step - 1):
            self._forecast.step_ended(self._recorder.nbytes, self._recorder.most)
        self._recorder.next_step()
        if self._replaying is not None:
            self._replaying.step += 1
        self._tell()

    def stop(self) -> None:
        self._leave()
        self._recorder.stop()
        self._tell(is_over=True)
        if self._golden is not None:
            self._golden.close()

    def abandon(self) -> None:
        self._leave()
        self._recorder.abandon()

    def _leave(self) -> None:
        self._is_at_work = False
        self._patches.take_back()
        if self._replaying is not None:
            self._replaying.switch_off()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        with ExitStack() as stack:
            if self._replaying is not None:
                stack.enter_context(self._replaying.out_of_sight())
            stack.enter_context(self._recorder.out_of_sight())
            yield

    def _has_replica(self, thread: threading.Thread) -> bool:
        """Whether a copy of a model computes in it, for DataParallel; other threads of a program are no training."""
        module = getattr(getattr(thread, "_target", None), "__module__", "")
        return self._is_at_work and module == _REPLICAS

    def _open_golden(self) -> Record | None:
        if not self._settings.replay:
            return None
        whole = Path(self._settings.replay)
        of_rank = file_of(whole, *rank_and_world())
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


def _share_of(limit: int | None) -> int | None:
    """Of what the records of one machine may take: each process has the same."""
    return None if limit is None else limit // max(1, processes_here())
