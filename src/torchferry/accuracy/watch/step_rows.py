"""Statistics of one step that is watched: read at once on the host, left on the device until the step ends, written when it
is whole."""

from __future__ import annotations

import ctypes
import math
import struct
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch

from torchferry.accuracy.file.writer import StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, RecordHeader, Statistics, TensorRef, Value, figures_in
from torchferry.accuracy.native.library import decode, statistics_into
from torchferry.accuracy.record.device_statistics import DeviceStatistics
from torchferry.accuracy.record.layout import Layouts, MemoryReader, TensorLayout, version_of

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


NamedLayouts = tuple[tuple[str, TensorLayout], ...]


class WatchedCall(NamedTuple):
    """A call of a step that has not ended."""

    where: Where
    arguments: tuple[tuple[str, Value], ...]
    named: NamedLayouts  # of its results
    role: str
    contents: list[int]


_A_NUMBER = TensorLayout("float64", (), (), "cpu")
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_MOST_FORMS = 100_000


class StepRows:
    """Rows of the step that is being watched, and the file that they go to."""

    def __init__(self, path: Path, header: RecordHeader, on_host: frozenset[str]) -> None:
        self.writer = StatisticsWriter(path, header)
        self._layouts = Layouts(on_host)
        self._reader = MemoryReader()
        self._device = DeviceStatistics()
        self._calls: list[WatchedCall] = []
        self._forms: dict[tuple[Where, NamedLayouts, str], tuple[int, int]] = {}  # of sites and signatures
        self._gathered: list[torch.Tensor] | None = None  # what devices will read
        self._addresses: dict[int, int] = {}  # of the rows of this step, by the numbers of contents
        # modules may answer with the same
        self._seen: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        self.calls = 0

    def add(self, where: Where, tensors: Sequence[tuple[str, torch.Tensor]], role: str = "") -> None:
        """Add a call with these results."""
        named, contents = [], []
        for name, tensor in tensors:
            layout, content = self._read(tensor)
            named.append((name, layout))
            contents.append(content)
        if self._gathered is None:
            self._device.launch()
        else:
            self._gathered += (tensor for _, tensor in tensors)
        self._calls.append(WatchedCall(where, (), tuple(named), role, contents))

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """What is added here stays as it is until the end: devices read all of it together."""
        self._gathered = []
        try:
            yield
            self._device.launch()
        finally:
            self._gathered = None

    def add_number(self, where: Where, value: float) -> None:
        """Add a call with a number as its result."""
        is_nan, is_infinite = math.isnan(value), math.isinf(value)
        shown = 0.0 if is_nan or is_infinite else value
        figures = (shown, shown, shown, abs(shown))
        found = Statistics(1, is_nan, is_infinite, value == 0, *figures, checksum=_bits(value))
        self.add_statistics(where, "value", found)

    def add_statistics(self, where: Where, name: str, statistics: Statistics) -> None:
        """Add a call whose result is known by its figures alone."""
        number, address = self.writer.row()
        ctypes.memmove(address, ROW.pack(*figures_in(statistics)), ROW.size)
        self._calls.append(WatchedCall(where, (), ((name, _A_NUMBER),), "", [number]))

    def add_arguments(self, where: Where, arguments: Iterable[tuple[str, Value]]) -> None:
        """Add a call without results."""
        self._calls.append(WatchedCall(where, tuple(arguments), (), "", []))

    def _read(self, tensor: torch.Tensor) -> tuple[TensorLayout, int]:
        """The layout, and the number of the content; 0 if it can't be read."""
        if type(tensor) in _PLAIN:
            layout = self._layouts.of(tensor)
            with suppress(
                RuntimeError
            ):  # it has no memory: asking for that first would take longer than all the rest
                return layout, 0 if layout.unread else self._content(tensor, layout)
        layout = self._layouts.of_any(tensor)
        return layout, 0 if layout.unread else self._content(tensor, layout)

    def _content(self, tensor: torch.Tensor, layout: TensorLayout) -> int:
        known = self._seen.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version_of(tensor):
            return known[2]
        number, address = self.writer.row()
        if not layout.elements:
            ctypes.memmove(address, bytes(ROW.size), ROW.size)
        elif layout.on_host:
            statistics_into(self._reader.address(tensor, layout), layout.dtype, layout.elements, address)
        else:
            self._device.put(tensor, layout, address)
        self._addresses[number] = address
        self._seen[id(tensor)] = (weakref.ref(tensor), version_of(tensor), number)
        return number

    def divide(self, operator: str, divisor: float) -> None:
        """The results of all calls of this name were so many times too large. Waits for the device."""
        self._device.fetch()
        for number in self._numbers(operator):
            row = self._row(number)
            sizes = (each / divisor for each in (row.minimum, row.maximum, row.mean, row.rms))
            checksum = (row.checksum + _bits(divisor) * _PRIME) & _MASK
            packed = ROW.pack(row.count, row.nans, row.infinities, row.zeros, *sizes, checksum)
            ctypes.memmove(self._addresses[number], packed, ROW.size)

    @property
    def waiting(self) -> int:
        """How many calls of this step there are by now."""
        return len(self._calls)

    def totals(self, operator: str, which: slice = slice(None)) -> Statistics | None:
        """The results of all calls of this name, or of those in a part of the step, as one tensor; None: there are none.

        Waits for the device."""
        self._device.fetch()
        rows = [self._row(number) for number in self._numbers(operator, which)]
        return _together(rows) if rows else None

    def _row(self, number: int) -> Statistics:
        return decode(ctypes.string_at(self._addresses[number], ROW.size))

    def _numbers(self, operator: str, which: slice = slice(None)) -> list[int]:
        """Of the contents of such calls, each once."""
        wanted = [call.contents for call in self._calls[which] if call.where.operator == operator]
        return [number for number in dict.fromkeys(chain.from_iterable(wanted)) if number]

    def finish(self, step: int) -> None:
        """The step is whole: write it."""
        self._device.fetch()
        for call in self._calls:
            self.writer.call(step, *self._numbers_of(call), call.contents)
        self.calls += len(self._calls)
        self.writer.checkpoint()
        self.forget()

    def _numbers_of(self, call: WatchedCall) -> tuple[int, int]:
        """Of the site and the signature."""
        key = (call.where, call.named, call.role)
        known = None if call.arguments else self._forms.get(key)
        if known is None:
            where = call.where
            site = self.writer.site(where.operator, where.phase, where.model, where.module, "", where.node)
            records = [layout.record(f"output/{name}", call.role) for name, layout in call.named]
            refs = tuple(map(TensorRef, range(len(records))))
            results: Value = None if not refs else refs[0] if len(refs) == 1 else refs
            known = site, self.writer.signature(call.arguments, encoded_tensors((), records), results)
            if not call.arguments:
                if len(self._forms) >= _MOST_FORMS:  # shapes change all the time
                    self._forms.clear()
                self._forms[key] = known
        return known

    def forget(self) -> None:
        """What was seen of a step that is not whole does not count."""
        self._calls, self._addresses, self._seen = [], {}, {}
        self._device.drop()

    def close(self, notes: Iterable[str] = ()) -> None:
        """End the file."""
        self.writer.close(notes)


def _together(rows: Sequence[Statistics]) -> Statistics:
    finite = [row.count - row.nans - row.infinities for row in rows]
    total = sum(finite)
    with_numbers = [row for row, count in zip(rows, finite, strict=True) if count]
    mean = math.fsum(row.mean * count for row, count in zip(rows, finite, strict=True)) / max(total, 1)
    square = math.fsum(row.rms**2 * count for row, count in zip(rows, finite, strict=True)) / max(total, 1)
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
        mean,
        math.sqrt(square),
        checksum,
    )


def _bits(value: float) -> int:
    (bits,) = struct.unpack("=Q", struct.pack("=d", value))
    return int(bits)
