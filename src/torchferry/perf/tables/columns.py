"""Reads the columns of a CSV file that are asked for, whatever a generation of profilers called them."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from torchferry.errors import InputError, not_readable
from torchferry.text import Text
from torchferry.traces.chunks import GZIP
from torchferry.traces.columns import INVALID, LARGEST_EXACT, Ints, nanoseconds

ABSENT = -1
DAMAGED = Text("{file}: {count} damaged rows were skipped.", "{file}：略去了 {count} 个损坏的行。")
_ROWS = 1 << 9  # that are held as text at a time: few, as Python walks over all that it holds again and again
_UNIT = re.compile(r"\s*\((\w+)\)\s*$")
_WHOLE = re.compile(r"\s*(-?[0-9]{1,18})(?:\.[0-9]*)?\s*$")
_MICROSECONDS = {"ms": 1e3, "s": 1e6}
_BYTES = {"byte": 1, "bytes": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


Names = tuple[str, ...]  # of one column, in the tables of all years


class CsvFile:
    """Iterates over batches of rows; counts the rows that have too few cells and leaves them out.

    `Start Time(us)` is the column "start time", in microseconds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self.is_cut_short = False
        heads = next(self._lines(), [])
        self._width = len(heads)
        self._columns: dict[str, tuple[int, str]] = {}  # their number, and their unit
        for number, cell in enumerate(map(str.strip, heads)):
            unit = _UNIT.search(cell)
            name = _UNIT.sub("", cell).lower().replace("_", " ")
            self._columns.setdefault(name, (number, unit[1].lower() if unit else ""))

    def column(self, names: Names) -> tuple[int, str]:
        """The number of a column and its unit, "" where the head does not say; -1: it is not there."""
        return next((self._columns[name] for name in names if name in self._columns), (ABSENT, ""))

    def has(self, *columns: Names) -> bool:
        """Whether all of some columns are there."""
        return all(self.column(names)[0] != ABSENT for names in columns)

    def require(self, what: Text, columns: Mapping[str, Names]) -> None:
        """InputError unless each of some columns is there under one of its names."""
        lacking = [shown for shown, names in columns.items() if not self.has(names)]
        if lacking:
            raise InputError(
                Text(
                    "{path} is not a {what}: columns missing: {lacking}",
                    "{path} 不是{what}：缺少列 {lacking}",
                ).format(path=repr(str(self.path)), what=what, lacking=", ".join(map(repr, lacking)))
            )

    def __iter__(self) -> Iterator[Batch]:
        lines, width = self._lines(), self._width
        next(lines, None)
        while batch := list(islice(lines, _ROWS)):
            whole = [row[:width] for row in batch if len(row) >= width]
            self.damaged += sum(1 for row in batch if 0 < len(row) < width)
            if whole:
                yield Batch(self, list(zip(*whole, strict=True)))

    def _lines(self) -> Iterator[list[str]]:
        try:
            with self._open() as file:
                yield from csv.reader(file)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.is_cut_short = True
        except csv.Error as error:
            raise InputError(
                Text(
                    f"{str(self.path)!r} is not a profiler's table: {error}",
                    f"{str(self.path)!r} 不是 profiler 的表格：{error}",
                )
            ) from None
        except OSError as error:
            raise not_readable(repr(str(self.path)), error) from None

    def _open(self) -> IO[str]:
        with self.path.open("rb") as file:
            compressed = file.read(2) == GZIP
        if compressed:
            return gzip.open(self.path, "rt", encoding="utf-8-sig", errors="replace", newline="")
        return self.path.open(encoding="utf-8-sig", errors="replace", newline="")


class Batch:
    """Some rows of a table, by the names of their columns."""

    def __init__(self, file: CsvFile, cells: list[tuple[str, ...]]) -> None:
        self._file = file
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells[0])

    def texts(self, names: Names) -> tuple[str, ...]:
        """A column as it stands; "" where it is not there."""
        number, _ = self._file.column(names)
        return ("",) * len(self) if number == ABSENT else self._cells[number]

    def times(self, names: Names) -> Ints:
        """Nanoseconds; INVALID where there is no time."""
        number, unit = self._file.column(names)
        return np.full(len(self), INVALID) if number == ABSENT else times(self._cells[number], unit)

    def sizes(self, names: Names) -> Ints:
        """Bytes; -1 where there is no size."""
        number, unit = self._file.column(names)
        return np.full(len(self), ABSENT) if number == ABSENT else sizes(self._cells[number], unit)

    def numbers(self, names: Names) -> Ints:
        """Whole numbers; -1 where there is none."""
        number, _ = self._file.column(names)
        if number == ABSENT:
            return np.full(len(self), ABSENT)
        try:
            return np.array(self._cells[number]).astype(np.int64)
        except (ValueError, OverflowError):
            return np.array([_whole(cell, ABSENT) for cell in self._cells[number]], np.int64)


def times(cells: Sequence[str], unit: str) -> Ints:
    """Nanoseconds; INVALID where there is no time. Exact where the unit is microseconds."""
    if unit in ("", "us"):
        return _microseconds([cell.strip() for cell in cells])
    if unit == "ns":
        return np.array([_whole(cell, INVALID) for cell in cells], np.int64)
    scale = _MICROSECONDS.get(unit, 1.0)
    return nanoseconds([_float(cell) * scale for cell in cells])


def _microseconds(cells: list[str]) -> Ints:
    """Nanoseconds by way of floats, which is fast, unless the times are too long for them."""
    try:
        floats = np.array(cells).astype(float)
    except ValueError:
        return nanoseconds(cells)
    return nanoseconds(cells if (np.abs(floats) > LARGEST_EXACT).any() else floats)  # type: ignore[arg-type]


def sizes(cells: Sequence[str], unit: str) -> Ints:
    """Bytes; -1 where there is no size."""
    scale = _BYTES.get(unit, 1)
    values = np.array([_float(cell) for cell in cells], float) * scale
    known = np.abs(values) < 2**62  # false for NaN
    return np.where(known, np.rint(np.where(known, values, 0.0)), ABSENT).astype(np.int64)


def _whole(cell: str, otherwise: int) -> int:
    found = _WHOLE.match(cell)
    return int(found[1]) if found else otherwise


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
