"""Tables of the device's memory: operator_memory.csv (who took it) and memory_record.csv (how much there was)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torchferry.errors import InputError
from torchferry.perf.tables.columns import DAMAGED, CsvFile
from torchferry.text import Text
from torchferry.traces.columns import INVALID, Flags, Interned, Ints
from torchferry.traces.model import DeviceMemoryEvents

_NAME = ("name",)
_SIZE = ("size",)
_TIME = ("allocation time",)
_RELEASED = ("release time",)
_DURATION = ("duration",)
_DEVICE = ("device type", "device")
_STAMP = ("timestamp",)
_COMPONENT = ("component",)
_ALLOCATED = ("total allocated",)
_RESERVED = ("total reserved",)
# The framework's and the graph engine's memory together, or what of it there is; the whole process's last.
_COMPONENTS = ("PTA+GE", "PTA", "GE", "APP", "")


class OperatorMemory(NamedTuple):
    """The memory that one operator took."""

    operator: str
    calls: int
    largest: int  # bytes of one call
    total: int  # bytes of all calls
    kept: int  # bytes that were not given back


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass
class MemoryTable:
    """Times are nanoseconds of the tables' own clock."""

    paths: tuple[str, ...]
    curves: dict[str, DeviceMemoryEvents]  # by device: "npu:0"
    operators: list[str] = field(default_factory=list)
    operator: Ints = field(default_factory=_none)  # in `operators`; one row per allocation
    size: Ints = field(default_factory=_none)  # bytes
    start: Ints = field(default_factory=_none)
    end: Ints = field(default_factory=_none)  # INVALID: it was not given back
    notes: list[Text] = field(default_factory=list)

    @property
    def peak(self) -> int:
        """The most bytes that tensors took, of any device; 0: not known."""
        return max(
            (int(curve.allocated.max()) for curve in self.curves.values() if len(curve.start)), default=0
        )

    def since(self, origin: int) -> MemoryTable:
        """The same table by the clock of a trace that began then: the curves have the form of Trace.memory."""
        curves = {device: curve._replace(start=curve.start - origin) for device, curve in self.curves.items()}
        end = np.where(self.end == INVALID, INVALID, self.end - origin)
        return replace(self, curves=curves, start=self.start - origin, end=end)

    @property
    def first(self) -> int:
        """The time at which the tables begin."""
        known = [self.start, *(curve.start for curve in self.curves.values())]
        return min(int(times.min()) for times in known if len(times))

    def at_peak(self) -> list[OperatorMemory]:
        """Who held memory when tensors took most of it; the greatest first."""
        if not len(self.start) or not self.curves:
            return []
        fullest = max(self.curves.values(), key=lambda curve: int(curve.allocated.max()))
        moment = int(fullest.start[int(fullest.allocated.argmax())])
        held = (self.start <= moment) & ((self.end == INVALID) | (self.end > moment))
        return self._uses(held & (self.size > 0))

    def uses(self) -> list[OperatorMemory]:
        """What each operator took; the greatest first."""
        return self._uses(self.size > 0)

    def _uses(self, rows: Flags) -> list[OperatorMemory]:
        found = []
        for number in np.unique(self.operator[rows]).tolist():
            mine = rows & (self.operator == number)
            size = self.size[mine]
            kept = size[self.end[mine] == INVALID]
            found.append(
                OperatorMemory(
                    self.operators[number], len(size), int(size.max()), int(size.sum()), int(kept.sum())
                )
            )
        return sorted(found, key=lambda use: (-use.total, use.operator))


def is_operator_memory(file: CsvFile) -> bool:
    """Whether the columns are those of operators' memory."""
    return file.has(_SIZE, _TIME)


def is_memory_record(file: CsvFile) -> bool:
    """Whether the columns are those of a record of memory."""
    return file.has(_STAMP, _ALLOCATED)


def read_memory(operator_memory: Path | None = None, memory_record: Path | None = None) -> MemoryTable:
    """Read one of the two tables or both; the record's curve is the exact one."""
    table = MemoryTable((), {})
    if operator_memory is not None:
        table = _read_operators(operator_memory)
    if memory_record is not None:
        curves, damaged = _read_record(memory_record)
        table.curves = curves or table.curves
        table.paths = (*table.paths, str(memory_record))
        if damaged:
            table.notes.append(DAMAGED.format(file=memory_record.name, count=damaged))
    if not len(table.start) and not table.curves:
        raise InputError(
            Text(
                f"{', '.join(map(repr, table.paths))}: memory was not recorded; profile with profile_memory=True",
                f"{', '.join(map(repr, table.paths))}：没有记录内存；采集时请设置 profile_memory=True",
            )
        )
    return table


def _read_operators(path: Path) -> MemoryTable:
    file = CsvFile(path)
    file.require(
        Text("table of memory (operator_memory.csv)", "内存表（operator_memory.csv）"),
        {"Name": _NAME, "Size(KB)": _SIZE, "Allocation Time(us)": _TIME},
    )
    operators, devices = Interned(), Interned()
    parts: list[list[Ints]] = []
    for batch in file:
        start = batch.times(_TIME)
        end = batch.times(_RELEASED)
        if not file.has(_RELEASED):
            duration = batch.times(_DURATION)
            end = np.where(duration == INVALID, INVALID, start + duration)
        parts.append(
            [
                np.array([operators[cell.strip()] for cell in batch.texts(_NAME)], np.int64),
                np.array([devices[cell.strip().lower()] for cell in batch.texts(_DEVICE)], np.int64),
                batch.sizes(_SIZE),
                start,
                end,
                *(batch.sizes((f"{moment} {what[0]}",)) for moment in ("allocation", "release")
                  for what in (_ALLOCATED, _RESERVED)),
            ]
        )  # fmt: skip
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.empty(0, np.int64)] * 9
    valid = columns[3] != INVALID
    operator, device, size, start, end, *totals = (column[valid] for column in columns)
    damaged = file.damaged + int((~valid).sum())
    return MemoryTable(
        (str(path),),
        _curves_of_operators(list(devices), device, size, start, end, totals),
        list(operators),
        operator,
        size,
        start,
        end,
        [DAMAGED.format(file=path.name, count=damaged)] if damaged else [],
    )


def _curves_of_operators(
    devices: list[str], device: Ints, size: Ints, start: Ints, end: Ints, totals: list[Ints]
) -> dict[str, DeviceMemoryEvents]:
    """What each row says of the moment of its allocation, and of the moment of its release."""
    allocated, reserved, allocated_after, reserved_after = totals
    released = (end != INVALID) & (allocated_after >= 0)
    found: dict[str, DeviceMemoryEvents] = {}
    for number, name in enumerate(devices):
        taken, given = (device == number) & (allocated >= 0), released & (device == number)
        if not taken.any():
            continue
        time = np.concatenate([start[taken], end[given]])
        order = np.argsort(time, kind="stable")
        found[name] = DeviceMemoryEvents(
            time[order],
            np.concatenate([size[taken], -size[given]])[order],
            np.concatenate([allocated[taken], allocated_after[given]])[order],
            np.concatenate([reserved[taken], reserved_after[given]])[order],
        )
    return found


def _read_record(path: Path) -> tuple[dict[str, DeviceMemoryEvents], int]:
    file = CsvFile(path)
    file.require(
        Text("record of memory (memory_record.csv)", "内存记录（memory_record.csv）"),
        {"Timestamp(us)": _STAMP, "Total Allocated(MB)": _ALLOCATED},
    )
    parts: dict[tuple[str, str], list[Ints]] = {}
    damaged = 0
    for batch in file:
        table = np.stack([batch.times(_STAMP), batch.sizes(_ALLOCATED), batch.sizes(_RESERVED)], axis=1)
        keys = Interned()
        pairs = zip(batch.texts(_DEVICE), batch.texts(_COMPONENT), strict=True)
        named = [(device.strip().lower(), component.strip()) for device, component in pairs]
        key = np.array([keys[each] for each in named], np.int64)
        valid = table[:, 0] != INVALID
        damaged += int((~valid).sum())
        for name, number in keys.items():
            parts.setdefault(name, []).append(table[valid & (key == number)])
    tables = {key: np.concatenate(several) for key, several in parts.items()}
    found = {device: _curve(tables, device) for device in dict.fromkeys(device for device, _ in tables)}
    return {device: curve for device, curve in found.items() if len(curve.start)}, damaged + file.damaged


def _curve(tables: dict[tuple[str, str], Ints], device: str) -> DeviceMemoryEvents:
    """The curve of the component that says most about the program's tensors."""
    own = {component: table for (of, component), table in tables.items() if of == device}
    wanted = next((name for name in _COMPONENTS if name in own), next(iter(own)))
    table = own[wanted]
    table = table[np.argsort(table[:, 0], kind="stable")]
    return DeviceMemoryEvents(
        table[:, 0], np.diff(table[:, 1], prepend=table[:1, 1]), table[:, 1], table[:, 2]
    )
