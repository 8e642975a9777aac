"""Tables of operators: what torch prints, operator_details.csv, op_statistic.csv."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torchferry.errors import InputError
from torchferry.perf.model import OperatorRow
from torchferry.perf.tables.columns import CsvFile
from torchferry.perf.tables.kernels import COUNT, TOTAL, TYPE, is_kernel_statistic
from torchferry.text import Text
from torchferry.traces.columns import Ints
from torchferry.traces.printed import printed_nanoseconds, table_device, table_lines, table_rows, text_pieces

_NAME = ("name",)
_SHAPES = ("input shapes",)
_HOST = ("host self duration",)
_DEVICE = ("device self duration",)


@dataclass
class OperatorTable:
    """Operators, or types of kernels, added up."""

    path: str
    rows: list[OperatorRow] = field(default_factory=list)  # what takes most time first
    device: str = ""  # cuda, npu ..., cpu; "": the table does not say
    has_host_time: bool = True


def is_operator_details(file: CsvFile) -> bool:
    """Whether the columns are those of a table of operators."""
    return file.has(_NAME, _HOST, _DEVICE)


def read_operators(path: Path) -> OperatorTable:
    """Read whichever of the three it is; InputError if it is none."""
    if path.suffix.lower() in (".csv", ".gz"):
        file = CsvFile(path)
        if is_operator_details(file):
            return _added_up(path, _details(file), has_host_time=True)
        if is_kernel_statistic(file):
            return _added_up(path, _statistic(file), has_host_time=False)
        raise InputError(
            Text(
                f"{str(path)!r} is not a table of operators (operator_details.csv, op_statistic.csv)",
                f"{str(path)!r} 不是算子表（operator_details.csv、op_statistic.csv）",
            )
        )
    # What key_averages().table() printed; other lines are passed over.
    rows = list(table_rows(table_lines(text_pieces(path))))
    if not rows:
        raise InputError(
            Text(
                f"{str(path)!r} is not a table of operators; give the text that key_averages().table() prints",
                f"{str(path)!r} 不是算子表；请给出 key_averages().table() 打印的文本",
            )
        )
    device = next((device for row in rows if (device := table_device(row))), "cpu")
    entries = (
        OperatorRow(
            row["Name"],
            row.get("Input Shapes", ""),
            "",
            int(row["calls"]),
            host := printed_nanoseconds(row.get("host time", "")) / 1e9,
            host if device == "cpu" else printed_nanoseconds(row.get(device, "")) / 1e9,
        )
        for row in rows
    )
    return _added_up(path, entries, device=device, has_host_time=True)


def _details(file: CsvFile) -> Iterator[OperatorRow]:
    """One row per call; times are without what it called."""
    for batch in file:
        host, device = (batch.times(names).clip(min=0).tolist() for names in (_HOST, _DEVICE))
        columns = zip(batch.texts(_NAME), batch.texts(_SHAPES), host, device, strict=True)
        for name, shapes, on_host, on_device in columns:
            yield OperatorRow(name.strip(), shapes.strip().strip('"'), "", 1, on_host / 1e9, on_device / 1e9)


def _statistic(file: CsvFile) -> Iterator[OperatorRow]:
    for batch in file:
        seconds = (batch.times(TOTAL).clip(min=0) / 1e9).tolist()
        counts = batch.numbers(COUNT).clip(min=0).tolist()
        for name, count, total in zip(batch.texts(TYPE), counts, seconds, strict=True):
            yield OperatorRow(name.strip(), "", "", count, 0.0, total)


def _added_up(
    path: Path, entries: Iterable[OperatorRow], *, device: str = "", has_host_time: bool
) -> OperatorTable:
    groups: dict[tuple[str, str, str], list[OperatorRow]] = defaultdict(list)
    for entry in entries:
        groups[entry.operator, entry.shapes, entry.dtypes].append(entry)
    if not groups:
        raise InputError(
            Text(f"{str(path)!r} holds no operators; profile again", f"{str(path)!r} 没有算子；请重新采集")
        )
    rows = [
        OperatorRow(
            *key,
            sum(entry.calls for entry in group),
            sum(entry.host_seconds for entry in group),
            sum(entry.device_seconds for entry in group),
        )
        for key, group in groups.items()
    ]
    rows.sort(key=lambda row: (-row.device_seconds, -row.host_seconds, row.operator))
    return OperatorTable(str(path), rows, device, has_host_time)


# step_trace_time.csv: what the time of each step went to, as the vendor's profiler added it up.

_STEP = ("step",)
_COMPUTING = ("computing",)
_COMMUNICATION = ("communication(not overlapped)",)
_FREE = ("free",)


class StepTable(NamedTuple):
    """What the time of each step went to, in nanoseconds."""

    path: str
    number: Ints  # -1: the profiler did not tell steps apart
    computing: Ints
    communication: Ints  # that computation does not cover
    free: Ints  # the device has nothing to do

    @property
    def seconds(self) -> float:
        """The time of all steps."""
        return int((self.computing + self.communication + self.free).sum()) / 1e9


def is_step_table(file: CsvFile) -> bool:
    """Whether the columns are those of a table of steps."""
    return file.has(_COMPUTING, _FREE)


def read_steps(path: Path) -> StepTable:
    """InputError if it is none. The table's times are microseconds."""
    file = CsvFile(path)
    file.require(
        Text("table of steps (step_trace_time.csv)", "步骤表（step_trace_time.csv）"),
        {"Computing": _COMPUTING, "Free": _FREE},
    )
    batches = list(file)
    if not batches:
        raise InputError(
            Text(f"{str(path)!r} holds no steps; profile again", f"{str(path)!r} 没有步；请重新采集")
        )
    columns = [[batch.numbers(_STEP) for batch in batches]]
    columns += [
        [batch.times(names).clip(min=0) for batch in batches] for names in (_COMPUTING, _COMMUNICATION, _FREE)
    ]
    return StepTable(str(path), *map(np.concatenate, columns))
