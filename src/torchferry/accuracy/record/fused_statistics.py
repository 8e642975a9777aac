"""Statistics of a device's tensors by kernels that read each of them once.

What one operator was given or has answered with is read by one launch. What is found stays on the device, and comes
over once per step, while the program goes on: nobody waits for it, except at the end.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from torchferry.accuracy.model import ROW, SIZES, Statistics
from torchferry.accuracy.native.library import DTYPES, decode, statistics_into
from torchferry.accuracy.record.layout import TensorLayout, address_of, flat, is_marked, staging_for
from torchferry.accuracy.record.quick_observer import library
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
        with unobserved():
            self._left = torch.empty(_PARTIALS * kernels.COLUMNS, dtype=torch.int64, device=device)
        self._readers: dict[int, _Launcher | None] = {}  # by the kind of elements; None: it can't be read
        self._writer = _Launcher(kernels.write_rows)
        self._coming: deque[_Batch] = deque()
        self._free: list[_Batch] = []
        self._batch = _Batch(device, kernels)
        self._held: list[torch.Tensor] = []  # copies, until they are read
        self.problem = ""  # why tensors of some kind can't be read
        # for the queue, which reads these
        properties = getattr(getattr(torch, device.type, None), "get_device_properties", lambda _device: None)
        processors = getattr(properties(device), "multi_processor_count", _FEW_PROCESSORS)
        self.most_programs = processors * _PROGRAMS_A_PROCESSOR
        self.tile = kernels.TILE * _WORD
        self.most_partials, self.most_tensors, self.beyond = _PARTIALS, _TENSORS, kernels.BEYOND
        self.device_index = device.index or 0
        self.left_address = self._left.data_ptr()
        self.table_address = self._batch.table.data_ptr()
        self.current_stream, self.current_device = self._stream.number_of, self._stream.current_device
        self.is_capturing = self._stream.is_capturing
        self.queue = library().ReadingQueue(self)

    def takes(self, layout: TensorLayout) -> bool:
        """Whether elements of this kind can be read. The first time that takes as long as a compiler does."""
        kind = layout.code
        if kind not in self._readers:
            self.queue.launch()
            self._readers[kind] = _Launcher(self._kernels.sum_up, kind, SIZES[DTYPES[kind]])
            self.problem = self._problem_with(kind)
            if self.problem:
                self._readers[kind] = None
                self.queue.drop()
            elif self._reader(kind).is_taken_by(self.queue, kind):
                self.problem = self._problem_with(kind)
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
                self.queue.put(there.data_ptr(), kind, count, nbytes, ctypes.addressof(found))
                self.queue.launch()
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
        self.queue.put(address, layout.code, layout.numbers, layout.nbytes, row)

    def launch(self) -> None:
        """Read all that was put: now it is there, and nobody has written to it."""
        self.queue.launch()
        self._held.clear()

    # What the queue asks for.

    def follow(self) -> None:
        """What the last stream has been given comes before what the current one will be given."""
        self._stream.follow()

    def launch_all(self) -> None:
        """Read all that is waiting: a launch for each kind of elements."""
        elsewhere = self._stream.follow()
        with elsewhere or nullcontext():
            batch, beyond = self._batch, self._kernels.BEYOND
            _, read, count = self.queue.counts
            batch.take_table_over(self.queue.entries, read, count)
            for kind, programs in self.queue.waiting():
                numbers = (beyond, beyond, beyond, beyond, beyond + kind, beyond + read)
                tensors = (batch.table, self._left)
                self._reader(kind)((programs, count - read), numbers, tensors, self._stream.number)

    def make_room(self) -> None:
        """Too much was read to be kept apart: have it added up; and let it come over, if the table is full."""
        self._add_up()
        if self.queue.counts[2] == _TENSORS:
            self.settle()

    def _reader(self, kind: int) -> _Launcher:
        reader = self._readers[kind]
        assert reader is not None, DTYPES[kind]
        return reader

    def _add_up(self) -> None:
        """Have the rows written of what was read, on the device."""
        batch, beyond = self._batch, self._kernels.BEYOND
        written, read, _ = self.queue.counts
        if read > written:
            elsewhere = self._stream.follow()
            with elsewhere or nullcontext():
                batch.take_table_over(self.queue.entries, written, read)
                tensors = (batch.table, self._left, batch.rows)
                self._writer((read - written, 1), (beyond + written,), tensors, self._stream.number)
        self.queue.add_up()

    def settle(self) -> None:
        """Let the figures of what was read come over. Those that have come are put into their places."""
        self.drop()
        self._add_up()
        addresses = self.queue.rows
        if addresses:
            with unobserved():
                self._batch.send(addresses)
            self.queue.clear()
            self._coming.append(self._batch)
            self._batch = self._free.pop() if self._free else _Batch(self._device, self._kernels)
            self.table_address = self._batch.table.data_ptr()
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

    def drop(self) -> None:
        """Forget what was put and is not read yet: it may not be there any more."""
        self.queue.drop()
        self._held.clear()


class _Batch:
    """Tensors whose figures come over together: a table of them, and their rows."""

    def __init__(self, device: torch.device, kernels: Any) -> None:
        self._entry_size = kernels.ENTRY * _WORD
        self._addresses: list[int] = []  # where the rows go
        with unobserved():
            self._table = staging_for(device, _TENSORS * self._entry_size).view(torch.int64)
            self.table = torch.empty(self._table.shape, dtype=torch.int64, device=device)
            self._rows = staging_for(device, _TENSORS * ROW.size).view(torch.int64)
            self.rows = torch.empty(self._rows.shape, dtype=torch.int64, device=device)
        module = getattr(torch, device.type, None)
        self._event: Any = getattr(module, "Event", _NoEvent)()

    def take_table_over(self, entries: int, start: int, stop: int) -> None:
        """Have these tensors in the table on the device; the entries of all of them lie at that address."""
        first, last = start * self._entry_size, stop * self._entry_size
        ctypes.memmove(self._table.data_ptr() + first, entries + first, last - first)
        words = slice(first // _WORD, last // _WORD)
        with unobserved():
            self.table[words].copy_(self._table[words], non_blocking=True)

    def send(self, addresses: list[int]) -> None:
        """Begin to copy the rows to the host, from where they go to these addresses."""
        self._addresses = addresses
        words = len(addresses) * ROW.size // _WORD
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
        for place in range(1, len(addresses) + 1):  # rows that lie one after the other are moved together
            if place == len(addresses) or addresses[place] != addresses[place - 1] + ROW.size:
                length = (place - first) * ROW.size
                ctypes.memmove(addresses[first], source + first * ROW.size, length)
                first = place
        self._addresses = []


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
        self.number_of: Callable[[int], int] | None = torch._C._cuda_getCurrentRawStream if is_cuda else None
        self.current_device: Callable[[], int] | None = torch._C._cuda_getDevice if is_cuda else None
        self.is_capturing: Callable[[], bool] | None = (
            torch._C._cuda_isCurrentStreamCapturing if is_cuda else None
        )
        self._stream: Any = None
        self.number: int | None = None  # as Triton takes it; None: it finds it out

    def follow(self) -> AbstractContextManager[Any] | None:
        """What the last stream has been given comes before what this one will be given. Answers with what makes the
        device the current one, if it is not."""
        if self.number_of is not None and self.current_device is not None:
            index = self._device.index
            number = self.number_of(index)
            if number != self.number:
                self._change()
                self.number = number
            return None if self.current_device() == index else torch.cuda.device(index)
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

    def __call__(
        self,
        grid: tuple[int, int],
        numbers: tuple[int, ...],
        tensors: tuple[torch.Tensor, ...],
        stream: int | None,
    ) -> None:
        if self._compiled is None:
            self._compiled = self._kernel[grid](*numbers, *tensors, *self._constants)
            return
        self._compiled[grid[0], grid[1], 1](*numbers, *tensors, *self._constants, stream=stream)

    def is_taken_by(self, queue: Any, kind: int) -> bool:
        """Whether the queue can launch the compiled kernel itself, for such elements: on CUDA, where it needs no more
        than its arguments."""
        metadata: Any = getattr(self._compiled, "metadata", None)
        function = getattr(self._compiled, "function", None)
        backend = getattr(getattr(metadata, "target", None), "backend", "")
        if backend != "cuda" or not function or getattr(metadata, "global_scratch_size", 0):
            return False
        return bool(queue.set_function(kind, function, 32 * metadata.num_warps, metadata.shared))


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
