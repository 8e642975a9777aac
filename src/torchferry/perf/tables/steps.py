"""step_trace_time.csv: what the time of each step went to, as the vendor's profiler added it up."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from torchferry.errors import InputError
from torchferry.perf.tables.columns import CsvFile, Heads, times, whole_numbers
from torchferry.perf.trace.columns import Ints

_STEP = ("step",)
_COMPUTING = ("computing",)
_COMMUNICATION = ("communication(not overlapped)",)
_FREE = ("free",)


class StepTable(NamedTuple):
    """One row per step; nanoseconds."""

    path: str
    number: Ints  # -1: the profiler did not tell steps apart
    computing: Ints
    communication: Ints  # that computation does not cover
    free: Ints  # the device has nothing to do

    @property
    def seconds(self) -> float:
        """Of all steps."""
        return int((self.computing + self.communication + self.free).sum()) / 1e9


def is_step_table(file: CsvFile) -> bool:
    """By its heads."""
    return file.heads.has(*_COMPUTING) and file.heads.has(*_FREE)


def read_steps(path: Path) -> StepTable:
    """InputError if it is none. The table's times are microseconds."""
    file = CsvFile(path)
    file.require("table of steps (step_trace_time.csv)", {"Computing": _COMPUTING, "Free": _FREE})
    batches = list(file)
    if not batches:
        raise InputError(f"{str(path)!r} holds no steps")
    cells = [sum(column, ()) for column in zip(*batches, strict=True)]
    steps = cells[number] if (number := file.heads.column(*_STEP)) >= 0 else ("",) * len(cells[0])
    return StepTable(
        str(path),
        whole_numbers(steps),
        *(_times(file.heads, cells, names) for names in (_COMPUTING, _COMMUNICATION, _FREE)),
    )


def _times(heads: Heads, cells: list[tuple[str, ...]], names: tuple[str, ...]) -> Ints:
    column = heads.column(*names)
    texts = cells[column] if column >= 0 else ("0",) * len(cells[0])
    return times(texts, "").clip(min=0)
