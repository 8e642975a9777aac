"""What all that record the steps of a process into a file have in common: when they begin and end, and how full it is."""

from __future__ import annotations

import os
from collections.abc import Callable

from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter
from torchferry.accuracy.record.sinks import Sink, TensorSink


class StepRecorder:
    """Records from `start` to `stop`, those steps that are wanted. What is recorded of them, others say."""

    _writer: StatisticsWriter | RecordWriter
    _sink: Sink

    def __init__(self, first_step: int) -> None:
        super().__init__()
        self.calls = 0  # that were written
        self._step = first_step
        self._process = os.getpid()
        self._failure = ""  # an error of ours
        self._is_closed = False

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._writer.nbytes

    @property
    def most(self) -> int:
        """How large it may become, as far as is known now."""
        return self._writer.most

    @property
    def failed(self) -> str:
        """Why recording ended early; "" if it did not."""
        return self._writer.failed or self._failure

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be seen, so far."""
        raise NotImplementedError

    def when_forward_ended(self, tell: Callable[[int, int], None]) -> None:
        """Have it told, when the first backward pass begins, how large the file is and may become."""
        if isinstance(self._sink, TensorSink):
            self._sink.forward_ended = tell

    def start(self) -> None:
        """Record from now on, if this step is wanted."""
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
        """Record no more, and end the file."""
        if self._is_closed:
            return
        self.abandon()
        if os.getpid() == self._process:
            self._sink.fetch()
            self._writer.close(self.notes)

    def abandon(self) -> None:
        """Record no more, and leave the file alone: in a forked process it is the parent's."""
        self._is_closed = True
        self._off()

    def _switch(self) -> None:
        """Begin or end, as this step is wanted or not."""
        raise NotImplementedError

    def _off(self) -> None:
        """Take back all that watches the program."""
        raise NotImplementedError
