"""Statistics of a device's tensors by kernels that read each of them once.

What one operator was given or has answered with is read by one launch. What is found stays on the device, and comes
over once per step, while the program goes on: nobody waits for it, except at the end.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchferry.accuracy.model import ROW, SIZES, Statistics
from torchferry.accuracy.native.library import DTYPES, decode, statistics_into
from torchferry.accuracy.record.layout import TensorLayout, address_of, flat, is_marked, staging_for
from torchferry.observe.modes import unobserved

_KERNELS = "torchferry.accuracy.record.triton_kernels"
_PARTIALS = 1 << 18  # programs whose results wait to be added up
_TENSORS = 1 << 14  # whose rows come over together
_WORD = 8  # bytes
_PROGRAMS_A_PROCESSOR = 4
_FEW_PROCESSORS = 64  # where a device does not tell how many it has
_AHEAD = 2  # batches that may be on their way


class FusedFigures:
    """Of the tensors of one device. To make one raises an error of any type where the kernels can't be had."""

    def __init__(self, device: torch.device) -> None:
        self._kernels = kernels = importlib.import_module(_KERNELS)
        self._device = device
        self._stream = _Stream(device)
        properties = getattr(getattr(torch, device.type, None), "get_device_properties", lambda _device: None)
        processors = getattr(properties(device), "multi_processor_count", _FEW_PROCESSORS)
        self._most = processors * _PROGRAMS_A_PROCESSOR
        self._tile = kernels.TILE * _WORD
        with unobserved():
            self._left = torch.empty(_PARTIALS * kernels.COLUMNS, dtype=torch.int64, device=device)
        self._readers: dict[int, _Launcher | None] = {}  # by the kind of elements; None: it can't be read
        self._writer = _Launcher(kernels.write_rows)
        self._coming: deque[_Batch] = deque()
        self._free: list[_Batch] = []
        self._batch = _Batch(device, kernels)
        self._used = 0  # of the partials
        # of what is not read yet: the kinds of elements, with the most programs that a tensor has; copies
        self._kinds: dict[int, int] = {}
        self._held: list[torch.Tensor] = []
        self.problem = ""  # why tensors of some kind can't be read

    def takes(self, layout: TensorLayout) -> bool:
        """Whether elements of this kind can be read. The first time that takes as long as a compiler does."""
        kind = layout.code
        if kind not in self._readers:
            self.launch()
            self._readers[kind] = _Launcher(self._kernels.sum_up, kind, SIZES[DTYPES[kind]])
            self.problem = self._problem_with(kind)
            if self.problem:
                self._readers[kind] = None
                self.drop()
        return self._readers[kind] is not None

    def _problem_with(self, kind: int) -> str:
        """What the kernels tell of elements that the host knows, too, must be the same."""
        with unobserved():
            sample = _sample(kind)
            count = sample.numel() * sample.element_size() // SIZES[DTYPES[kind]]
            expected, found = (ctypes.create_string_buffer(ROW.size) for _ in range(2))
            statistics_into(sample.data_ptr(), DTYPES[kind], count, ctypes.addressof(expected))
            try:
                there = sample.to(self._device)
                nbytes = sample.numel() * sample.element_size()
                self.put_memory(there.data_ptr(), kind, count, nbytes, ctypes.addressof(found))
                self.launch()
                self.fetch()
            except Exception as error:  # of any type, for compilers are involved
                return f"{type(error).__name__}: {error}".partition("\n")[0]
        if _are_alike(decode(expected), decode(found)):
            return ""
        return f"{DTYPES[kind]}: {decode(found)} instead of {decode(expected)}"

    def put(self, tensor: torch.Tensor, layout: TensorLayout, row: int) -> None:
        """Have this tensor read at the next launch, and its figures put into the row some time later."""
        address = address_of(tensor)
        if address % _WORD or not layout.is_dense or (layout.has_marks and is_marked(tensor)):
            with unobserved():
                copy = flat(tensor, layout)
                copy = copy.clone() if copy.data_ptr() % _WORD else copy
            self._held.append(copy)
            address = copy.data_ptr()
        self.put_memory(address, layout.code, layout.numbers, layout.nbytes, row)

    def put_memory(self, address: int, kind: int, numbers: int, nbytes: int, row: int) -> None:
        """The same of memory that begins at a whole word."""
        programs = min(-(-nbytes // self._tile), self._most)
        if self._used + programs > _PARTIALS:
            self.launch()
            self._add_up()
        if self._batch.count == _TENSORS:
            self.launch()
            self.settle()
        self._batch.add(row, (address, nbytes, self._used, programs, numbers, kind))
        self._used += programs
        if self._kinds.get(kind, 0) < programs:
            self._kinds[kind] = programs

    def launch(self) -> None:
        """Read all that was put: now it is there, and nobody has written to it."""
        if not self._kinds:
            return
        elsewhere = self._stream.follow()
        if elsewhere is None:
            self._launch()
        else:
            with elsewhere:
                self._launch()
        self._kinds.clear()
        self._held.clear()

    def _launch(self) -> None:
        batch, stream, beyond = self._batch, self._stream.number, self._kernels.BEYOND
        count = batch.count - batch.read
        if count == 1:
            address, nbytes, first, programs, _, kind = batch.entries[-batch.ENTRY :]
            numbers = (address + beyond, nbytes + beyond, first + beyond, programs + beyond, beyond - 1, beyond)
            self._reader(kind)((programs, 1), numbers, (batch.table, self._left), stream)
        else:
            batch.take_table_over(batch.read)
            for kind, programs in self._kinds.items():
                numbers = (beyond, beyond, beyond, beyond, beyond + kind, beyond + batch.read)
                self._reader(kind)((programs, count), numbers, (batch.table, self._left), stream)
        batch.read = batch.count

    def _reader(self, kind: int) -> _Launcher:
        reader = self._readers[kind]
        assert reader is not None, DTYPES[kind]
        return reader

    def drop(self) -> None:
        """Forget what was put and is not read yet: it may not be there any more."""
        self._kinds.clear()
        self._held.clear()
        self._batch.cut()

    def _add_up(self) -> None:
        """Have the rows written of what was read, on the device."""
        batch, beyond = self._batch, self._kernels.BEYOND
        count = batch.read - batch.written
        if count:
            elsewhere = self._stream.follow()
            with elsewhere or unobserved():
                batch.take_table_over(batch.written)
                tensors = (batch.table, self._left, batch.rows)
                self._writer((count, 1), (beyond + batch.written,), tensors, self._stream.number)
            batch.written = batch.read
        self._used = 0

    def settle(self) -> None:
        """Let the figures of what was read come over. Those that have come are put into their places."""
        self.drop()
        self._add_up()
        if self._batch.written:
            with unobserved():
                self._batch.send()
            self._coming.append(self._batch)
            self._batch = self._free.pop() if self._free else _Batch(self._device, self._kernels)
        while self._coming and (len(self._coming) > _AHEAD or self._coming[0].has_come()):
            self._take_in()

    def _take_in(self) -> None:
        batch = self._coming.popleft()
        batch.take_in()
        self._free.append(batch)

    def fetch(self) -> None:
        """Fill the rows of all that was read. Waits for the device."""
        self.settle()
        while self._coming:
            self._take_in()


class _Batch:
    """Tensors whose figures come over together: a table of them, and their rows."""

    def __init__(self, device: torch.device, kernels: Any) -> None:
        self.ENTRY: int = kernels.ENTRY
        self.count = self.read = self.written = 0  # tensors
        self.entries = array("q")
        self._addresses: list[int] = []  # where the rows go
        with unobserved():
            self._table = staging_for(device, _TENSORS * self.ENTRY * _WORD).view(torch.int64)
            self.table = torch.empty(self._table.shape, dtype=torch.int64, device=device)
            self._rows = staging_for(device, _TENSORS * ROW.size).view(torch.int64)
            self.rows = torch.empty(self._rows.shape, dtype=torch.int64, device=device)
        module = getattr(torch, device.type, None)
        self._event: Any = getattr(module, "Event", _NoEvent)()

    def add(self, row: int, entry: tuple[int, ...]) -> None:
        """Add a tensor, as the kernels' table has it, whose figures go to this address."""
        self.entries.extend(entry)
        self._addresses.append(row)
        self.count += 1

    def cut(self) -> None:
        """Take out those that were not read."""
        if self.count > self.read:
            self.count = self.read
            del self.entries[self.count * self.ENTRY :], self._addresses[self.count :]

    def take_table_over(self, start: int) -> None:
        """Have the table on the device, from this tensor on."""
        first, last = start * self.ENTRY, self.count * self.ENTRY
        place = self.entries.buffer_info()[0] + first * _WORD
        ctypes.memmove(self._table.data_ptr() + first * _WORD, place, (last - first) * _WORD)
        with unobserved():
            self.table[first:last].copy_(self._table[first:last], non_blocking=True)

    def send(self) -> None:
        """Begin to copy the rows that are written to the host."""
        words = self.written * ROW.size // _WORD
        self._rows[:words].copy_(self.rows[:words], non_blocking=True)
        self._event.record()

    def has_come(self) -> bool:
        """Whether the rows are here."""
        return bool(self._event.query())

    def take_in(self) -> None:
        """Wait for the rows, put them where they belong, and be empty."""
        self._event.synchronize()
        source, addresses = self._rows.data_ptr(), self._addresses
        first = 0
        for place in range(1, self.written + 1):  # rows that lie one after the other are moved together
            if place == self.written or addresses[place] != addresses[place - 1] + ROW.size:
                length = (place - first) * ROW.size
                ctypes.memmove(addresses[first], source + first * ROW.size, length)
                first = place
        self.count = self.read = self.written = 0
        del self.entries[:], addresses[:]


class _NoEvent:
    """Of a device that has none: what was asked of it is done."""

    def record(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """It has come."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""


class _Stream:
    """The stream of a device that the program uses at the moment."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._module: Any = getattr(torch, device.type, None)
        is_cuda = device.type == "cuda"
        self._number_of: Callable[[int], int] | None = torch._C._cuda_getCurrentRawStream if is_cuda else None
        self._current_device: Callable[[], int] | None = torch._C._cuda_getDevice if is_cuda else None
        self._stream: Any = None
        self.number: int | None = None  # as Triton takes it; None: it finds it out

    def follow(self) -> AbstractContextManager[Any] | None:
        """What the last stream has been given comes before what this one will be given. Answers with what makes the
        device the current one, if it is not."""
        if self._number_of is not None and self._current_device is not None:
            index = self._device.index
            number = self._number_of(index)
            if number != self.number:
                self._change()
                self.number = number
            return None if self._current_device() == index else torch.cuda.device(index)
        if hasattr(self._module, "current_stream"):
            self._change()
        return None

    def _change(self) -> None:
        stream, last = self._module.current_stream(self._device), self._stream
        if last is not None and last != stream:
            stream.wait_event(last.record_event())
        self._stream = stream


class _Launcher:
    """Launches a kernel, quickly once it is compiled."""

    def __init__(self, kernel: Any, *constants: int) -> None:
        self._kernel = kernel
        self._constants = constants
        self._compiled: Any = None
        self._pointers: tuple[tuple[torch.Tensor, ...], tuple[int, ...]] = ((), ())

    def __call__(
        self, grid: tuple[int, int], numbers: tuple[int, ...], tensors: tuple[torch.Tensor, ...], stream: int | None
    ) -> None:
        if self._compiled is None:
            self._compiled = self._kernel[grid](*numbers, *tensors, *self._constants)
            return
        self._compiled[(*grid, 1)](*numbers, *tensors, *self._constants, stream=stream)


_SAMPLE = 20_011  # bytes: some tiles, the last one not whole


def _sample(kind: int) -> torch.Tensor:
    """Elements of a kind as bytes: numbers great and small, and whatever else it has."""
    dtype = getattr(torch, DTYPES[kind])
    count = _SAMPLE // SIZES[DTYPES[kind]]
    if not dtype.is_floating_point:
        return (torch.arange(count * SIZES[DTYPES[kind]]) * 37 % 251).to(torch.uint8)
    numbers = torch.linspace(-3, 5, count, dtype=torch.float64).pow(3)
    numbers[::97], numbers[::101], numbers[5::103], numbers[::107] = 0.0, math.nan, math.inf, -math.inf
    return numbers.to(dtype).view(torch.uint8)


_CLOSE = 1e-9


def _are_alike(expected: Statistics, found: Statistics) -> bool:
    """Sums may differ by the order of their terms."""
    exact = ("count", "nans", "infinities", "zeros", "minimum", "maximum", "checksum")
    if any(getattr(expected, name) != getattr(found, name) for name in exact):
        return False
    return all(
        math.isclose(getattr(expected, name), getattr(found, name), rel_tol=_CLOSE, abs_tol=_CLOSE)
        for name in ("mean", "rms")
    )
