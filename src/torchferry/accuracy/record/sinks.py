"""What becomes of the calls: rows of statistics, or calls with the bytes of their tensors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from torchferry.accuracy.file.call_json import encoded_statistics
from torchferry.accuracy.file.call_objects import CallForm
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import Call, Kept, RandomState, TensorRecord
from torchferry.accuracy.native.library import ROW, SHORT, decode, kernels
from torchferry.accuracy.record.calls import (
    OngoingCall,
    OperatorPlan,
    TensorTemplates,
    arguments_of,
    results_of,
)
from torchferry.accuracy.record.device_statistics import DeviceStatistics
from torchferry.accuracy.record.layout import (
    NOWHERE,
    UNKNOWN,
    Content,
    KnownContents,
    KnownStorage,
    MemoryReader,
    TensorLayout,
    address_of,
)
from torchferry.observe.modes import unobserved

# The states of generators that random operators draw from.


class Generators:
    """Keeps each state once for as long as it does not change. `append` takes bytes and answers where they lie."""

    def __init__(self, append: Callable[[bytes], int]) -> None:
        self._append = append
        self._last: dict[int, tuple[bytes, RandomState]] = {}  # by the generator

    def state(
        self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]
    ) -> RandomState | None:
        """What the call is about to draw from; None if that can't be told."""
        with unobserved():
            try:
                generator = plan.argument("generator", args, kwargs) or _default(plan, args, kwargs, tensors)
                state = generator.get_state()
                data = ctypes.string_at(state.data_ptr(), state.numel())
            except (
                RuntimeError,
                AttributeError,
                IndexError,
            ):  # no such generator, or a graph is being captured
                return None
            last = self._last.get(id(generator))
            if last is None or last[0] != data:
                where = RandomState(str(generator.device), self._append(data), len(data))
                last = self._last[id(generator)] = (data, where)
            return last[1]


def _default(
    plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]
) -> Any:
    """The default generator of the device that the call computes on."""
    given = plan.argument("device", args, kwargs)
    device = (
        torch.device(given) if given is not None else tensors[0].device if tensors else torch.device("cpu")
    )
    if device.type == "cpu":
        return torch.default_generator
    module = getattr(torch, device.type)
    generators = module.default_generators
    return generators[module.current_device() if device.index is None else device.index]


_MOST_SIGNATURES = 100_000  # programs whose numbers change all the time have one for each call
_MOST_FORMS = 20_000  # each takes a few kilobytes
_MOST_WAITING = 4096  # figures that may stay on a device


class _Sink:
    """What both have in common."""

    def __init__(self, contents: KnownContents, lock: threading.RLock) -> None:
        self.lock = lock  # held while a call is looked at
        self._contents = contents
        self._reader = MemoryReader()
        self._short, self._long = kernels()
        self._row = ctypes.create_string_buffer(ROW.size)
        self._nothing: Content | None = None  # the content of tensors without elements
        self._templates: dict[tuple[Any, ...], TensorTemplates] = {}

    def unusual(self, tensor: torch.Tensor) -> Content:
        """The content of a tensor that has no memory of its own."""
        return UNKNOWN

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


class StatisticsSink(_Sink):
    """Rows of figures."""

    def __init__(self, contents: KnownContents, writer: StatisticsWriter) -> None:
        super().__init__(contents, writer.lock)
        self._writer = writer
        self._devices = DeviceStatistics()
        self._numbers: dict[tuple[Any, ...], tuple[int, int]] = {}  # of sites and signatures

    def content(self, tensor: torch.Tensor, layout: TensorLayout, is_output: bool) -> Content:
        """The content of a tensor, read if it is not known."""
        if not layout.nbytes:
            return self._empty()
        storage = self._contents.find_or_storage(tensor, layout)
        if isinstance(storage, Content):
            return storage
        if not layout.on_host:
            return self._on_device(storage, tensor, layout)
        address = address_of(tensor) if layout.is_plain else self._reader.address(tensor, layout)
        if storage.is_shifting:
            return self._read_again(storage, tensor, layout, address)
        number, row = self._writer.row()
        count = layout.numbers
        (self._short if count <= SHORT else self._long)(address, layout.code, count, row)
        return storage.keep(tensor, layout, number)

    def _on_device(self, storage: KnownStorage, tensor: torch.Tensor, layout: TensorLayout) -> Content:
        refuse_capturing(layout)
        number, row = self._writer.row()
        self._devices.put(tensor, layout, row)
        if len(self._devices) >= _MOST_WAITING:
            self._devices.fetch()
        return storage.keep(tensor, layout, number)

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

    def before(self, call: OngoingCall) -> None:
        """States of generators are not kept: nothing is computed again from figures."""

    def write(self, call: OngoingCall, step: int) -> None:
        """Take a complete call."""
        key = tuple(call.key)
        whole = (key, id(call.site), *call.values)  # there is one object for each site, and it stays
        numbers = self._numbers.get(whole)
        if numbers is None:
            numbers = self._new_numbers(key, whole, call)
        self._writer.call(step, numbers[0], numbers[1], [content.number for content in call.contents])

    def _new_numbers(
        self, key: tuple[Any, ...], whole: tuple[Any, ...], call: OngoingCall
    ) -> tuple[int, int]:
        if len(self._numbers) >= _MOST_SIGNATURES:
            self._numbers.clear()
        numbers = self._numbers[whole] = (self._site(call), self._signature(key, call))
        return numbers

    def _site(self, call: OngoingCall) -> int:
        site = call.site
        return self._writer.site(
            call.plan.operator, site.phase, site.model, site.module, site.place, site.node
        )

    def _signature(self, key: tuple[Any, ...], call: OngoingCall) -> int:
        made = self._templates_of(key, call)
        if not made.encoded:
            made.encoded = encoded_tensors(made.inputs, made.outputs)
        return self._writer.signature_with(arguments_of(call), made.encoded, results_of(call))

    def settle(self) -> None:
        """Fetch what is still on devices."""
        self._devices.fetch()


class TensorSink(_Sink):
    """Calls with the bytes of their tensors."""

    def __init__(self, contents: KnownContents, writer: RecordWriter, kept: Kept) -> None:
        super().__init__(contents, writer.lock)
        self._writer = writer
        self._generators = Generators(writer.append)
        self._only_inputs = kept is Kept.INPUTS
        self._numbers = 0  # of contents
        self._calls = 0
        self._forms: dict[tuple[Any, ...], CallForm] = {}

    def content(self, tensor: torch.Tensor, layout: TensorLayout, is_output: bool) -> Content:
        """The content of a tensor, read if it is not known."""
        if not layout.nbytes:
            return self._empty()
        found = self._contents.find(tensor, layout)
        is_summed_up = is_output and self._only_inputs
        if found is not None and (found.offset is not None or is_summed_up):
            return found
        storage = self._contents.storage(tensor, layout)
        around = None if is_summed_up else storage.around(tensor, layout)
        if around is not None and around.offset is not None:
            content = found or storage.keep(tensor, layout, self._next_number())
            content.offset = around.offset + content.start - around.start
            return content
        refuse_capturing(layout)
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
        """Keep the state of the generator that the call is about to draw from."""
        call.random = self._generators.state(
            call.plan, call.args, call.kwargs, [look[0] for look in call.inputs]
        )

    def write(self, call: OngoingCall, step: int) -> None:
        """Take a complete call."""
        self._calls += 1
        figures: list[int | str] = []
        offsets = []
        sorts: list[Any] = []
        for content in call.contents:
            offset, statistics = content.offset, content.statistics
            if content.number:
                figures.append(content.number)
            if offset is not None:
                figures.append(offset)
                offsets.append(offset)
            if statistics is not None:
                figures.append(encoded_statistics(statistics))
            sorts.append((content.number == 0, offset is None, statistics is None))
        random = call.random
        if random is not None:
            figures += (random.offset, random.nbytes)
            sorts.append(random.device)
        key = tuple(call.key)
        whole = (key, id(call.site), *call.values, *sorts)
        form = self._forms.get(whole)
        if form is None:
            form = self._new_form(key, whole, call, step)
        self._writer.write_alike(form, self._calls, step, figures, offsets)

    def _new_form(
        self, key: tuple[Any, ...], whole: tuple[Any, ...], call: OngoingCall, step: int
    ) -> CallForm:
        if len(self._forms) >= _MOST_FORMS:
            self._forms.clear()
        made = _call(self._calls, step, call, self._templates_of(key, call))
        form = self._forms[whole] = CallForm(made)
        return form

    def settle(self) -> None:
        """Nothing is under way."""


def _call(number: int, step: int, call: OngoingCall, templates: TensorTemplates) -> Call:
    site = call.site
    count = len(call.inputs)
    return Call(
        number,
        call.plan.operator,
        step,
        site.phase,
        site.model,
        site.module,
        site.place,
        site.node,
        arguments_of(call),
        _filled(templates.inputs, call.contents[:count]),
        _filled(templates.outputs, call.contents[count:]),
        results_of(call),
        call.random,
    )


def _filled(templates: tuple[TensorRecord, ...], contents: list[Content]) -> tuple[TensorRecord, ...]:
    return tuple(
        replace(each, content=content.number, offset=content.offset, statistics=content.statistics)
        for each, content in zip(templates, contents, strict=True)
    )


def refuse_capturing(layout: TensorLayout) -> None:
    """While a graph is captured, nothing is computed, and to wait for the device would end the capture."""
    if layout.device.startswith("cuda") and torch.cuda.is_current_stream_capturing():
        raise CapturingError("a graph is being captured")


class CapturingError(RuntimeError):
    """Why a tensor was not read."""
