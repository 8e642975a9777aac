"""Statistics of one step: read at once on the host, left on the device until the step ends, written when it is whole."""

from __future__ import annotations

import ctypes
import math
import struct
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch

from torchferry.accuracy.file.statistics_writer import StatisticsWriter
from torchferry.accuracy.model import Header, Statistics, TensorRecord, TensorRef, Value
from torchferry.accuracy.native.statistics import ROW, decode, statistics_into
from torchferry.accuracy.record.device_statistics import DeviceStatistics
from torchferry.accuracy.record.outside import Outsides
from torchferry.accuracy.record.reading import Reader
from torchferry.accuracy.record.tensors import version_of
from torchferry.observe.tensors import why_unreadable

_PRIME = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Where:
    """What a row is of."""

    operator: str
    phase: str
    model: str = ""
    module: str = ""
    node: str = ""


class StepRows:
    """Rows of the step that is being watched, and the file that they go to."""

    def __init__(self, path: Path, header: Header, on_host: frozenset[str]) -> None:
        self._writer = StatisticsWriter(path, header)
        self._outsides = Outsides(on_host)
        self._reader = Reader()
        self._device = DeviceStatistics()
        self._calls: list[tuple[Where, tuple[tuple[str, Value], ...], list[TensorRecord], list[int]]] = []
        self._addresses: dict[int, int] = {}  # of the rows of this step, by the numbers of contents
        self._seen: dict[
            int, tuple[weakref.ref[torch.Tensor], int, int]
        ] = {}  # modules may answer with the same
        self.calls = 0

    @property
    def failed(self) -> str:
        """Why nothing more is written; "" all is well."""
        return self._writer.failed

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._writer.nbytes

    def add(self, where: Where, tensors: Sequence[tuple[str, torch.Tensor]], role: str = "") -> None:
        """A call with these results."""
        records, contents = [], []
        for name, tensor in tensors:
            outside = self._outsides.of_any(tensor)
            contents.append(0 if outside.unread else self._content(tensor))
            records.append(
                TensorRecord(
                    f"output/{name}",
                    outside.dtype,
                    outside.shape,
                    outside.stride,
                    outside.device,
                    role,
                    is_dense=outside.is_dense,
                    unread=outside.unread,
                )
            )
        self._calls.append((where, (), records, contents))

    def add_number(self, where: Where, value: float, name: str = "value") -> None:
        """A call with a number as its result."""
        is_nan, is_infinite = math.isnan(value), math.isinf(value)
        shown = 0.0 if is_nan or is_infinite else value
        figures = (shown, shown, shown, abs(shown))
        self.add_statistics(
            where, name, Statistics(1, is_nan, is_infinite, value == 0, *figures, checksum=_bits(value))
        )

    def add_statistics(self, where: Where, name: str, statistics: Statistics) -> None:
        """A call whose result is known by its figures alone."""
        number, address = self._writer.row()
        packed = ROW.pack(
            statistics.count, statistics.nans, statistics.infinities, statistics.zeros, statistics.minimum,
            statistics.maximum, statistics.mean, statistics.rms, statistics.checksum,
        )  # fmt: skip
        ctypes.memmove(address, packed, ROW.size)
        record = TensorRecord(f"output/{name}", "float64", (), (), "cpu")
        self._calls.append((where, (), [record], [number]))

    def add_arguments(self, where: Where, arguments: Iterable[tuple[str, Value]]) -> None:
        """A call without results."""
        self._calls.append((where, tuple(arguments), [], []))

    def _content(self, tensor: torch.Tensor) -> int:
        known = self._seen.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version_of(tensor):
            return known[2]
        if why_unreadable(tensor):
            return 0
        outside = self._outsides.of_any(tensor)
        number, address = self._writer.row()
        if not outside.elements:
            ctypes.memmove(address, bytes(ROW.size), ROW.size)
        elif outside.on_host:
            statistics_into(self._reader.address(tensor, outside), outside.dtype, outside.elements, address)
        else:
            self._device.put(tensor, outside, address)
        self._addresses[number] = address
        self._seen[id(tensor)] = (weakref.ref(tensor), version_of(tensor), number)
        return number

    def divide(self, operator: str, divisor: float) -> None:
        """The results of all calls of this name were so many times too large. Waits for the device."""
        self._device.fetch()
        for number in self._numbers(operator):
            row = decode(ctypes.string_at(self._addresses[number], ROW.size))
            sizes = (each / divisor for each in (row.minimum, row.maximum, row.mean, row.rms))
            checksum = (row.checksum + _bits(divisor) * _PRIME) & _MASK
            packed = ROW.pack(row.count, row.nans, row.infinities, row.zeros, *sizes, checksum)
            ctypes.memmove(self._addresses[number], packed, ROW.size)

    def totals(self, operator: str) -> Statistics | None:
        """The results of all calls of this name as one tensor; None: there are none. Waits for the device."""
        self._device.fetch()
        rows = [
            decode(ctypes.string_at(self._addresses[number], ROW.size)) for number in self._numbers(operator)
        ]
        return _together(rows) if rows else None

    def _numbers(self, operator: str) -> list[int]:
        """Of the contents of such calls, each once."""
        wanted = [contents for where, _, _, contents in self._calls if where.operator == operator]
        return [number for number in dict.fromkeys(chain.from_iterable(wanted)) if number]

    def finish(self, step: int) -> None:
        """The step is whole: write it."""
        self._device.fetch()
        for where, arguments, records, contents in self._calls:
            site = self._writer.site(where.operator, where.phase, where.model, where.module, "", where.node)
            refs = tuple(TensorRef(place) for place in range(len(records)))
            results: Value = None if not refs else refs[0] if len(refs) == 1 else refs
            signature = self._writer.signature(arguments, (), records, results)
            self._writer.call(step, site, signature, contents)
        self.calls += len(self._calls)
        self._writer.checkpoint()
        self.forget()

    def forget(self) -> None:
        """What was seen of a step that is not whole does not count."""
        self._calls, self._addresses, self._seen = [], {}, {}
        self._device = DeviceStatistics()

    def close(self, notes: Iterable[str] = ()) -> None:
        """End the file."""
        self._writer.close(notes)


def _together(rows: Sequence[Statistics]) -> Statistics:
    finite = [row.count - row.nans - row.infinities for row in rows]
    total = sum(finite)
    with_numbers = [row for row, count in zip(rows, finite, strict=True) if count]
    checksum = 0
    for row in rows:
        checksum = (checksum * _PRIME + row.checksum + 1) & _MASK
    return Statistics(
        sum(row.count for row in rows),
        sum(row.nans for row in rows),
        sum(row.infinities for row in rows),
        sum(row.zeros for row in rows),
        min((row.minimum for row in with_numbers), default=0.0),
        max((row.maximum for row in with_numbers), default=0.0),
        math.fsum(row.mean * count for row, count in zip(rows, finite, strict=True)) / total
        if total
        else 0.0,
        math.sqrt(math.fsum(row.rms**2 * count for row, count in zip(rows, finite, strict=True)) / total)
        if total
        else 0.0,
        checksum,
    )


def _bits(value: float) -> int:
    (bits,) = struct.unpack("=Q", struct.pack("=d", value))
    return int(bits)
