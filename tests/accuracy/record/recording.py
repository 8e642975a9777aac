"""Records what a function does, and gives back what can be read from the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import Call, Kept, RecordHeader
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.settings import Selection


def make_recorder(path: Path, kept: Kept = Kept.TENSORS, selection: Selection | None = None) -> Recorder:
    """One that has not started."""
    return Recorder(path, RecordHeader(kept, "test", "cpu", torch.__version__), selection)


def recorded(
    path: Path, function: Callable[[], object], kept: Kept = Kept.TENSORS, selection: Selection | None = None
) -> Record:
    """The record of one call of a function."""
    recorder = make_recorder(path / "record.h5", kept, selection)
    recorder.start()
    try:
        function()
    finally:
        recorder.stop()
    return open_record(path / "record.h5")


def names(record: Record) -> list[str]:
    """The operators, in order."""
    return [call.operator.removeprefix("aten::") for call in record.calls]


def call_of(record: Record, operator: str) -> Call:
    """The only call of an operator."""
    (found,) = (call for call in record.calls if call.operator == f"aten::{operator}")
    return found


def inputs_of(record: Record, operator: str) -> list[torch.Tensor]:
    """What the calls of an operator were given first."""
    return [record.tensor(call.inputs[0]) for call in record.calls if call.operator == f"aten::{operator}"]
