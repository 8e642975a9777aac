"""The recorder of one process: writes down every operator from start to stop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from torchferry.accuracy.file.statistics_writer import StatisticsWriter
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Header, Kept
from torchferry.accuracy.record.graphs import GraphReplays
from torchferry.accuracy.record.looking import Looker
from torchferry.accuracy.record.mode import COMPILED, RecordingMode
from torchferry.accuracy.record.outside import Outsides
from torchferry.accuracy.record.selection import Selection
from torchferry.accuracy.record.sinks import StatisticsSink, TensorSink
from torchferry.accuracy.record.tensors import Contents
from torchferry.observe.modes import has_compiled
from torchferry.observe.where import Whereabouts
from torchferry.sim.here import simulated


class Recorder:
    """Into one file. It sees the thread that starts it, and autograd's."""

    def __init__(
        self, path: Path, header: Header, selection: Selection | None = None, first_step: int = 1
    ) -> None:
        self._selection = selection or Selection()
        self._step = first_step
        self._process = os.getpid()
        self._contents = Contents()
        self._where = Whereabouts()
        self._writer: StatisticsWriter | RecordWriter
        self._sink: StatisticsSink | TensorSink
        if header.kept is Kept.STATISTICS:
            self._writer = StatisticsWriter(path, header)
            self._sink = StatisticsSink(self._contents, self._writer)
        else:
            self._writer = RecordWriter(path, header)
            self._sink = TensorSink(self._contents, self._writer, header.kept)
        self._looker = Looker(self._contents, Outsides(_host_devices()), self._sink, self._where)
        self.mode = RecordingMode(self._sink, self._contents, self._looker, self._where, self._selection)
        self._replays = GraphReplays(self._graph_replayed)
        self._is_on = False
        self._is_closed = False

    @property
    def calls(self) -> int:
        """How many were written."""
        return self.mode.calls

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._writer.nbytes

    @property
    def failed(self) -> str:
        """Why recording ended early; "" if it did not."""
        return self._writer.failed or self.mode.failed

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be seen, so far."""
        return tuple(self.mode.notes)

    def forget(self, tensor: torch.Tensor) -> None:
        """The tensor was written to, out of the recorder's sight."""
        with contextlib.suppress(RuntimeError):  # it has no memory
            self._contents.forget_storage(tensor)

    def start(self) -> None:
        """From now on, if this step is wanted."""
        if not self._is_closed:
            self._switch()

    def next_step(self) -> None:
        """A step has ended, the next one begins."""
        if self._is_closed or os.getpid() != self._process:
            return
        self._step += 1
        self._sink.settle()
        self._writer.checkpoint()
        self._switch()

    def stop(self) -> None:
        """Until now; ends the file."""
        if self._is_closed:
            return
        self._is_closed = True
        self._off()
        self.mode.end()
        if os.getpid() == self._process:
            if has_compiled():
                self.mode.note(COMPILED)
            self._sink.settle()
            self._writer.close(self.notes)

    def abandon(self) -> None:
        """In a forked process: leave the parent's file alone."""
        self._is_closed = True
        self._off()
        self.mode.end()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """What is called in it is not recorded; it may write to anything."""
        with self.mode.out_of_sight():
            yield
        self._contents.forget_all()

    def _switch(self) -> None:
        self.mode.step = self._step
        wanted = self._selection.has_step(self._step) and not self._writer.failed
        if wanted and not self._is_on:
            self._is_on = True
            self._contents.forget_all()
            self._where.watch()
            self._replays.watch()
            self.mode.switch_on()
        elif not wanted:
            self._off()

    def _off(self) -> None:
        if self._is_on:
            self._is_on = False
            self.mode.switch_off()
            self._replays.unwatch()
            self._where.unwatch()

    def _graph_replayed(self) -> None:
        self.mode.note("graphs")  # of a device: what is computed inside does not show
        self._contents.forget_all()


def _host_devices() -> frozenset[str]:
    """The types of devices whose memory is the host's: a simulated one's is."""
    now = simulated()
    return frozenset({"cpu"} if now is None else {"cpu", now.vendor.device_type})
