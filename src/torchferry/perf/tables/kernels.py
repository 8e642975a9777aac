"""Tables of the device's kernels: kernel_details.csv of both generations, op_summary.csv."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torchferry.errors import InputError
from torchferry.perf.tables.columns import ABSENT, DAMAGED, Batch, CsvFile
from torchferry.text import Text
from torchferry.traces.columns import INVALID, EventKind, Flags, Interned, Ints
from torchferry.traces.intervals import Intervals
from torchferry.traces.names import device_kind

NAME = ("name", "op name")
TYPE = ("type", "op type")
CORE = ("accelerator core", "task type", "core type")
COUNT = ("count",)
STATE = ("op state",)
START = ("start time", "task start time")
DURATION = ("duration", "task duration")
TOTAL = ("total time",)  # of op_statistic.csv
_SHAPES = (
    ("input shapes",),
    ("input data types",),
    ("input formats",),
    ("output shapes",),
    ("output data types",),
    ("output formats",),
)
_NOT_KNOWN = ("N/A", "NA", "nan", "")
_CUT_SHORT = Text(
    "{file} is truncated: it was read up to its last complete row.",
    "{file} 被截断：已读到最后一个完整的行。",
)


class KernelSignature(NamedTuple):
    """What a kernel was called with; texts of one item per tensor, divided by semicolons, as the table has them."""

    input_shapes: str = ""
    input_dtypes: str = ""
    input_formats: str = ""
    output_shapes: str = ""
    output_dtypes: str = ""
    output_formats: str = ""


class KernelGroup(NamedTuple):
    """Kernels of one name with the same tensors."""

    name: str
    type: str  # MatMulV2, TransData ...; "": not known
    core: str  # AI_CORE, AI_CPU ...; "": not known
    state: str  # dynamic, static; "": not known
    signature: KernelSignature
    calls: int
    seconds: float


@dataclass
class KernelTable:
    """One row per kernel. Times are nanoseconds of the table's own clock."""

    path: str
    texts: list[str]  # that name, type, core and state are numbers of
    signatures: list[KernelSignature]
    name: Ints
    type: Ints
    core: Ints
    state: Ints
    signature: Ints
    start: Ints  # INVALID: not known
    duration: Ints
    step: Ints  # -1: the table does not tell steps apart
    stream: Ints  # -1: not known
    calls: Ints  # 1; in a table of statistics how many kernels a row stands for
    notes: list[Text] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.duration)

    @property
    def seconds(self) -> float:
        """The time of all kernels, added up."""
        return int(self.duration.sum()) / 1e9

    @property
    def whole_time(self) -> int:
        """What shares are of: from the first kernel to the last one; without times, the time of all kernels."""
        start, end = self.span
        return end - start if end > start else int(self.duration.sum())

    def share(self, seconds: float) -> float:
        """A share of the whole time."""
        return seconds / (self.whole_time / 1e9) if self.whole_time else 0.0

    @property
    def steps(self) -> list[int]:
        """Their numbers; empty: the table does not tell them apart."""
        return [number for number in np.unique(self.step).tolist() if number >= 0]

    @cached_property
    def kind(self) -> Ints:
        """The EventKind of each kernel: compute, communication, copy or fill."""
        kinds = np.array([device_kind(text) for text in self.texts], np.int64)
        by_core = kinds[self.core]
        return np.where(
            np.isin(by_core, (EventKind.COMMUNICATION, EventKind.COPY)), by_core, kinds[self.name]
        )

    def busy(self, *kinds: EventKind) -> Intervals:
        """When the device did such work."""
        rows = np.isin(self.kind, kinds) & (self.start != INVALID)
        return Intervals.union(self.start[rows], self.start[rows] + self.duration[rows])

    @cached_property
    def span(self) -> tuple[int, int]:
        """From the first kernel's start to the last one's end; (0, 0): the table has no times."""
        known = self.start != INVALID
        if not known.any():
            return 0, 0
        return int(self.start[known].min()), int((self.start + self.duration)[known].max())

    @cached_property
    def groups(self) -> list[KernelGroup]:
        """All kernels by name and tensors; what takes most time first."""
        return self.groups_of(np.ones(len(self), bool))

    def groups_of(self, rows: Flags) -> list[KernelGroup]:
        """Some rows by name and tensors; what takes most time first."""
        if not rows.any():
            return []
        keys = np.stack([self.name, self.type, self.core, self.state, self.signature], axis=1)[rows]
        distinct, group = np.unique(keys, axis=0, return_inverse=True)
        group = group.reshape(-1)
        calls = np.bincount(group, weights=self.calls[rows])
        seconds = np.bincount(group, weights=self.duration[rows]) / 1e9
        found = [
            KernelGroup(
                self.texts[name],
                self.texts[kind],
                self.texts[core],
                self.texts[state],
                self.signatures[signature],
                int(calls[row]),
                float(seconds[row]),
            )
            for row, (name, kind, core, state, signature) in enumerate(distinct.tolist())
        ]
        return sorted(found, key=lambda each: (-each.seconds, each.name, each.signature))


def is_kernel_table(file: CsvFile) -> bool:
    """Whether the columns are those of a table of kernels."""
    return file.has(NAME, DURATION) and (file.has(CORE) or file.has(START))


def is_kernel_statistic(file: CsvFile) -> bool:
    """Whether the columns are those of types of kernels, added up."""
    return file.has(TYPE, COUNT, TOTAL)


def read_kernels(path: Path) -> KernelTable:
    """InputError if it is no such table, or an empty one. A table of statistics has one row for each type of kernel."""
    file = CsvFile(path)
    if not is_kernel_statistic(file):
        file.require(
            Text("table of kernels (kernel_details.csv)", "kernel 表（kernel_details.csv）"),
            {"Name": NAME, "Duration(us)": DURATION},
        )
    reader = _ColumnReader(file)
    columns = [reader.columns(batch) for batch in file]
    if not columns:
        raise InputError(
            Text(
                f"{str(path)!r} holds no kernels; profile the device's activity too",
                f"{str(path)!r} 没有 kernel；采集时请包含设备活动",
            )
        )
    joined = {key: np.concatenate([part[key] for part in columns]) for key in columns[0]}
    valid = joined["duration"] >= 0
    damaged = file.damaged + int((~valid).sum())
    notes = [_CUT_SHORT.format(file=path.name)] if file.is_cut_short else []
    if damaged:
        notes.append(DAMAGED.format(file=path.name, count=damaged))
    kept = {key: column[valid] for key, column in joined.items()}
    if not valid.any():
        raise InputError(
            Text(
                f"{str(path)!r} holds no kernel with a duration; profile again",
                f"{str(path)!r} 没有带耗时的 kernel；请重新采集",
            )
        )
    return KernelTable(
        path=str(path),
        texts=list(reader.texts),
        signatures=[KernelSignature(*key) for key in reader.signatures],
        notes=notes,
        **kept,
    )


class _ColumnReader:
    def __init__(self, file: CsvFile) -> None:
        self.texts = Interned()
        self.signatures = Interned()
        self._cells = _SpelledCells(self.texts)
        self._name = NAME if file.has(NAME) else TYPE
        self._duration = DURATION if file.has(DURATION) else TOTAL
        self._has_counts = file.has(COUNT)

    def columns(self, batch: Batch) -> dict[str, Ints]:
        texts = {"name": self._name, "type": TYPE, "core": CORE, "state": STATE}
        ones = np.ones(len(batch), np.int64)
        return {
            **{
                key: np.array([self._cells[cell] for cell in batch.texts(names)], np.int64)
                for key, names in texts.items()
            },
            "signature": self._signatures(batch),
            "start": batch.times(START),
            "duration": batch.times(self._duration),
            "step": batch.numbers(("step id", "step")),
            "stream": batch.numbers(("stream id",)),
            "calls": batch.numbers(COUNT).clip(min=0) if self._has_counts else ones,
        }

    def _signatures(self, batch: Batch) -> Ints:
        seen: dict[tuple[str, ...], int] = {}
        found = []
        for key in zip(*map(batch.texts, _SHAPES), strict=True):
            number = seen.get(key, ABSENT)
            if number == ABSENT:
                number = seen[key] = self.signatures[tuple(map(_known, key))]
            found.append(number)
        return np.array(found, np.int64)


class _SpelledCells(dict[str, int]):
    """The numbers of cells as the file spells them: each is looked at once."""

    def __init__(self, texts: Interned) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, cell: str) -> int:
        self[cell] = number = self._texts[_known(cell)]
        return number


def _known(cell: str) -> str:
    text = cell.strip().strip('"').strip()
    return "" if text in _NOT_KNOWN else text
