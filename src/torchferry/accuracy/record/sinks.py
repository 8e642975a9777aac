"""What becomes of the calls: rows of statistics, or calls with the bytes of their tensors."""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.file.call_json import encoded_statistics
from torchferry.accuracy.file.call_objects import CallForm
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Call, Kept, KeptPart, RandomState, RecordHeader, TensorRecord
from torchferry.accuracy.native.library import SHORT, decode, kernels
from torchferry.accuracy.record.calls import OngoingCall, TensorTemplates, arguments_of, results_of
from torchferry.accuracy.record.device_copies import DeviceCopies
from torchferry.accuracy.record.device_statistics import DeviceStatistics
from torchferry.accuracy.record.layout import (
    NOWHERE,
    UNKNOWN,
    Content,
    KnownContents,
    KnownStorage,
    Layouts,
    MemoryReader,
    TensorLayout,
    address_of,
    generator_of,
    host_devices,
    pieces,
)
from torchferry.accuracy.record.slicing import Cut, Slicing
from torchferry.observe.modes import unobserved
from torchferry.observe.where import BACKWARD

# The states of generators that random operators draw from.


class Generators:
    """Keeps each state once for as long as it does not change. `append` takes bytes and answers where they lie."""

    def __init__(self, append: Callable[[bytes], int]) -> None:
        self._append = append
        self._last: dict[int, tuple[bytes, RandomState]] = {}  # by the generator

    def state(self, call: OngoingCall) -> RandomState | None:
        """What the call is about to draw from; None if that can't be told."""
        with unobserved():
            try:
                generator = call.argument("generator") or generator_of(_device_of(call))
                state = generator.get_state()
                data = ctypes.string_at(state.data_ptr(), state.numel())
            # no such generator, or a graph is being captured
            except (RuntimeError, AttributeError, IndexError):
                return None
            last = self._last.get(id(generator))
            if last is None or last[0] != data:
                where = RandomState(str(generator.device), self._append(data), len(data))
                last = self._last[id(generator)] = (data, where)
            return last[1]


def _device_of(call: OngoingCall) -> torch.device:
    given = call.argument("device")
    if given is not None:
        return torch.device(given)
    return call.inputs[0][0].device if call.inputs else torch.device("cpu")


_MOST_SIGNATURES = 100_000  # programs whose numbers change all the time have one for each call
_MOST_FORMS = 20_000  # each takes a few kilobytes


class Sink(ABC):
    """What reads contents that are not known yet, and takes calls."""

    def __init__(self, contents: KnownContents, lock: threading.RLock) -> None:
        self.lock = lock  # held while a call is looked at
        self._contents = contents
        self._reader = MemoryReader()
        self._short, self._long = kernels()
        self._row = ctypes.create_string_buffer(ROW.size)
        self._nothing: Content | None = None  # the content of tensors without elements
        self._templates: dict[tuple[Any, ...], TensorTemplates] = {}

    @abstractmethod
    def content(self, tensor: torch.Tensor, layout: TensorLayout, is_output: bool) -> Content:
        """The content of a tensor, read if it is not known; RuntimeError if it can't be read."""

    def unusual(self, tensor: torch.Tensor) -> Content:
        """The content of a tensor that has no memory of its own."""
        return UNKNOWN

    def before(self, call: OngoingCall) -> None:  # noqa: B027 - not all sinks need what is lost with the call
        """A random operator is about to be called."""

    def read(self) -> None:  # noqa: B027 - not all sinks leave reading to devices
        """The contents of this call's tensors that were asked for are there now, and may not be afterwards."""

    @abstractmethod
    def write(self, call: OngoingCall, step: int) -> None:
        """Take a complete call."""

    def settle(self) -> None:  # noqa: B027
        """A step has ended: let what is on devices come over."""

    def fetch(self) -> None:  # noqa: B027
        """Wait for what is on devices."""

    def drain(self) -> None:  # noqa: B027
        """Wait for copies that are under way from devices."""

    def _templates_of(self, key: tuple[Any, ...], call: OngoingCall) -> TensorTemplates:
        found = self._templates.get(key)
        if found is None:
            if len(self._templates) >= _MOST_SIGNATURES:
                self._templates.clear()
            found = self._templates[key] = TensorTemplates(call)
        return found

    def _put_statistics(self, address: int, layout: TensorLayout, row: int) -> None:
        count = layout.numbers
        (self._short if count <= SHORT else self._long)(address, layout.code, count, row)


class StatisticsSink(Sink):
    """Writes rows of figures. States of generators are not kept: nothing is computed again from figures."""

    def __init__(self, contents: KnownContents, writer: StatisticsWriter) -> None:
        super().__init__(contents, writer.lock)
        self._writer = writer
        self._devices = DeviceStatistics()
        self._numbers: dict[tuple[Any, ...], tuple[int, int]] = {}  # of sites and signatures

    def content(self, tensor: torch.Tensor, layout: TensorLayout, is_output: bool) -> Content:
        if not layout.nbytes:
            return self._empty()
        storage = self._contents.find_or_storage(tensor, layout)
        if isinstance(storage, Content):
            return storage
        if not layout.on_host:
            return storage.keep(tensor, layout, self.put(tensor, layout))
        address = address_of(tensor) if layout.is_plain else self._reader.address(tensor, layout)
        if storage.is_shifting:
            return self._read_again(storage, tensor, layout, address)
        number, row = self._writer.row()
        count = layout.numbers
        (self._short if count <= SHORT else self._long)(address, layout.code, count, row)
        return storage.keep(tensor, layout, number)

    def put(self, tensor: torch.Tensor, layout: TensorLayout) -> int:
        """The number of the figures of a device's tensor, which come some time later."""
        refuse_capturing(layout)
        number, row = self._writer.row()
        self._devices.put(tensor, layout, row)
        return number

    def _read_again(
        self, storage: KnownStorage, tensor: torch.Tensor, layout: TensorLayout, address: int
    ) -> Content:
        self._put_statistics(address, layout, ctypes.addressof(self._row))
        checksum = decode(self._row).checksum
        last = storage.last(tensor, layout)
        if last is not None and last.checksum == checksum:
            return last
        number, row = self._writer.row()
        ctypes.memmove(row, self._row, ROW.size)
        content = storage.keep(tensor, layout, number)
        content.checksum = checksum
        return content

    def _empty(self) -> Content:
        if self._nothing is None:
            number, row = self._writer.row()
            self._put_statistics(0, NOWHERE, row)
            self._nothing = Content(number, 0, NOWHERE, 0)
        return self._nothing

    def write(self, call: OngoingCall, step: int) -> None:
        key = tuple(call.key)
        whole = (key, id(call.site), *call.values)  # there is one object for each site, and it stays
        numbers = self._numbers.get(whole)
        if numbers is None:
            numbers = self._new_numbers(key, call)
            if len(self._numbers) >= _MOST_SIGNATURES:
                self._numbers.clear()
            self._numbers[whole] = numbers
        self._writer.call(step, *numbers, [content.number for content in call.contents])

    def _new_numbers(self, key: tuple[Any, ...], call: OngoingCall) -> tuple[int, int]:
        return self._numbers_of(call, self._templates_of(key, call))

    def _numbers_of(self, call: OngoingCall, made: TensorTemplates) -> tuple[int, int]:
        site = call.site
        number = self._writer.site(
            call.plan.operator, site.phase, site.model, site.module, site.place, site.node
        )
        if not made.encoded:
            made.encoded = encoded_tensors(made.inputs, made.outputs)
        return number, self._writer.signature(arguments_of(call), made.encoded, results_of(call))

    # For an observer that keeps account of contents itself.

    @property
    def row(self) -> Callable[[], tuple[int, int]]:
        """Gives the number of a new content, and the address of its row."""
        return self._writer.row

    @property
    def address(self) -> Callable[[torch.Tensor, TensorLayout], int]:
        """Gives memory of the host that holds a tensor's elements."""
        return self._reader.address

    @property
    def put_call(self) -> Callable[[int, int, int, list[int]], None]:
        """Writes a call: its step, the numbers of its site and signature, those of its contents."""
        return self._writer.call

    def queue_for(self, tensor: torch.Tensor, layout: TensorLayout) -> Any:
        """What reads such tensors of a device without us; None: nothing does."""
        return self._devices.queue_for(tensor, layout)

    def empty_number(self) -> int:
        """The number of the content of all tensors without elements."""
        return self._empty().number

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Where the tables' last blocks are described."""
        return self._writer.blocks

    def numbers_of(self, call: OngoingCall, shape: bytes) -> tuple[int, int]:
        """The numbers of a call's site and of its signature; of the same shape are calls that differ in their values
        alone."""
        return self._numbers_of(call, self._templates_of((shape,), call))

    def read(self) -> None:
        self._devices.launch()

    def settle(self) -> None:
        self._devices.settle()

    def fetch(self) -> None:
        self._devices.fetch()


class TensorSink(Sink):
    """Writes calls with the bytes of their tensors."""

    def __init__(
        self, contents: KnownContents, writer: RecordWriter, kept: Kept, slicing: Slicing | None = None
    ) -> None:
        super().__init__(contents, writer.lock)
        self._writer = writer
        self._slicing = slicing
        self._devices = DeviceStatistics()
        self._layouts = Layouts(host_devices())
        self._generators = Generators(writer.append)
        self._only_inputs = kept is Kept.INPUTS
        self._copies: DeviceCopies | None = None
        self.forward_ended: Callable[[int, int], None] | None = (
            None  # told once, with the file's size and limit
        )
        self._numbers = 0  # of contents
        self._calls = 0
        self._forms: dict[tuple[Any, ...], CallForm] = {}

    def content(self, tensor: torch.Tensor, layout: TensorLayout, is_output: bool) -> Content:
        if not layout.nbytes:
            return self._empty()
        found = self._contents.find(tensor, layout)
        is_summed_up = is_output and self._only_inputs
        if found is not None and (found.offset is not None or found.part_layout is layout or is_summed_up):
            return found
        storage = self._contents.storage(tensor, layout)
        around = None if is_summed_up else storage.around(tensor, layout)
        if around is not None and around.offset is not None:
            content = found or storage.keep(tensor, layout, self._next_number())
            content.offset = around.offset + content.start - around.start
            return content
        refuse_capturing(layout)
        cut = None if is_summed_up or self._slicing is None else self._slicing.of(layout)
        if cut is not None:
            return self._in_part(tensor, layout, storage, cut)
        if not (layout.on_host or is_summed_up or storage.is_shifting):
            offset = self._copied(tensor, layout)
            if offset:
                content = found or storage.keep(tensor, layout, self._next_number())
                storage.keep_offset(content, offset)
                return content
        address = self._reader.address(tensor, layout)
        checksum = None
        if is_summed_up or storage.is_shifting:
            self._put_statistics(address, layout, ctypes.addressof(self._row))
            checksum = decode(self._row).checksum
            last = storage.last(tensor, layout)
            found = last if last is not None and last.checksum == checksum else None
        content = found or storage.keep(tensor, layout, self._next_number())
        content.checksum = checksum
        if is_summed_up:
            content.statistics = decode(self._row)
        elif content.offset is None:
            storage.keep_offset(content, self._writer.append_memory(address, layout.nbytes))
        return content

    def _in_part(
        self, tensor: torch.Tensor, layout: TensorLayout, storage: KnownStorage, cut: Cut
    ) -> Content:
        """Statistics of the whole, and some slices of it."""
        row = ctypes.addressof(self._row)
        if layout.on_host:
            self._put_statistics(self._reader.address(tensor, layout), layout, row)
        else:
            self._devices.put(tensor, layout, row)
            self._devices.launch()
            self._devices.fetch()
        statistics = decode(self._row)
        last = storage.last(tensor, layout)
        is_known = last is not None and last.checksum == statistics.checksum
        if last is not None and is_known and last.part_layout is layout:
            return last
        with unobserved():
            part = cut.of(pieces(tensor, layout))
        kept = self._layouts.of(part)
        offset = 0 if layout.on_host else self._copied(part, kept)
        if not offset:
            offset = self._writer.append_memory(self._reader.address(part, kept), kept.nbytes)
        number = last.number if last is not None and is_known else self._next_number()
        content = storage.keep(tensor, layout, number)
        content.checksum, content.statistics = statistics.checksum, statistics
        content.part, content.part_layout = KeptPart(offset, *cut), layout
        return content

    def _copied(self, tensor: torch.Tensor, layout: TensorLayout) -> int:
        """Where the bytes of a device's tensor will lie in the file; 0 if nothing can be done in the background."""
        copies = self._copies
        if copies is None:
            copies = self._copies = DeviceCopies(tensor.device)
        if not self._writer.is_in_background:
            self._writer.write_in_background(copies.ring)
            if not self._writer.is_in_background:
                return 0
        return self._writer.append_copied(layout.nbytes, copies.of(tensor, layout))

    def drain(self) -> None:
        self._writer.drain()

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _empty(self) -> Content:
        if self._nothing is None:
            self._nothing = Content(self._next_number(), 0, NOWHERE, 0)
            self._nothing.offset = self._writer.append(b"")
            self._put_statistics(0, NOWHERE, ctypes.addressof(self._row))
            self._nothing.statistics = decode(self._row)
        return self._nothing

    def before(self, call: OngoingCall) -> None:
        call.random = self._generators.state(call)

    def write(self, call: OngoingCall, step: int) -> None:
        self._calls += 1
        if self.forward_ended is not None and call.site.phase == BACKWARD:
            self.forward_ended(self._writer.nbytes, self._writer.most)
            self.forward_ended = None
        figures: list[int | str] = []
        offsets = []
        sorts: list[Any] = []
        for content in call.contents:
            offset, statistics, part = content.offset, content.statistics, content.part
            if content.number:
                figures.append(content.number)
            if part is not None:
                offset = part.offset
            if offset is not None:
                figures.append(offset)
                offsets.append(offset)
            if statistics is not None:
                figures.append(encoded_statistics(statistics))
            sorts.append((content.number == 0, offset is None, statistics is None, part and part[1:]))
        random = call.random
        if random is not None:
            figures += (random.offset, random.nbytes)
            sorts.append(random.device)
        key = tuple(call.key)
        whole = (key, id(call.site), *call.values, *sorts)
        form = self._forms.get(whole)
        if form is None:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            made = _call(self._calls, step, call, self._templates_of(key, call))
            form = self._forms[whole] = CallForm(made)
        self._writer.write_alike(form, self._calls, step, figures, offsets)


def open_sink(
    path: Path, header: RecordHeader, contents: KnownContents, most: int | None, slicing: Slicing | None
) -> tuple[StatisticsWriter | RecordWriter, Sink]:
    """A new file, and what puts calls into it as the header says; `most`: so large it may become; `slicing`: which
    tensors are kept in part."""
    if header.kept is Kept.STATISTICS:
        tables = StatisticsWriter(path, header, most)
        return tables, StatisticsSink(contents, tables)
    writer = RecordWriter(path, header, most)
    return writer, TensorSink(contents, writer, header.kept, slicing)


def _call(number: int, step: int, call: OngoingCall, templates: TensorTemplates) -> Call:
    site = call.site
    inputs = _filled(templates.inputs, call.contents[: len(call.inputs)])
    outputs = _filled(templates.outputs, call.contents[len(call.inputs) :])
    return Call(
        number, call.plan.operator, step, site.phase, site.model, site.module, site.place, site.node,
        arguments_of(call), inputs, outputs, results_of(call), call.random,
    )  # fmt: skip


def _filled(templates: tuple[TensorRecord, ...], contents: list[Content]) -> tuple[TensorRecord, ...]:
    return tuple(
        replace(
            each,
            content=content.number,
            offset=content.offset,
            statistics=content.statistics,
            part=content.part,
        )
        for each, content in zip(templates, contents, strict=True)
    )


def refuse_capturing(layout: TensorLayout) -> None:
    """While a graph is captured, nothing is computed, and to wait for the device would end the capture."""
    if layout.device.startswith("cuda") and torch.cuda.is_current_stream_capturing():
        raise CapturingError("a graph is being captured")


class CapturingError(RuntimeError):
    """Why a tensor was not read."""
