"""Figures of tensors: those that the host can read are looked at once, as long as nothing is written to them."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from torchferry.accuracy.model import INPUT, OUTPUT, ROW, Statistics
from torchferry.accuracy.native.library import decode, statistics_into
from torchferry.accuracy.overflow.model import CallFigures, TensorFigures
from torchferry.accuracy.record.calls import OperatorPlan, named_tensors
from torchferry.accuracy.record.layout import Layouts, MemoryReader, TensorLayout, version_of
from torchferry.observe.modes import unobserved
from torchferry.observe.operators import why_unreadable
from torchferry.observe.where import ProgramSite

# One call that is checked: its tensors by their names, as they were before it and as they are after
# it.
#
# Inputs are kept by reference until the call is judged. What the call overwrites is gone then, so it
# is copied before, up to a limit; what another call overwrites while this one waits to be judged is
# replaced by that call's copy.

MOST_COPIED = 1 << 30  # bytes; what a call overwrites beyond this is not kept
_NOWHERE = ProgramSite("")


class CheckedCall:
    """A call, from before it is made until it is judged."""

    __slots__ = (
        "_versions",
        "answered",
        "arguments",
        "copies",
        "inputs",
        "number",
        "outputs",
        "plan",
        "site",
        "step",
        "unsaved",
    )

    def __init__(self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.plan = plan
        self.arguments = [*zip(plan.names, args, strict=False), *kwargs.items()]
        self.inputs: list[tuple[str, torch.Tensor]] = []  # where a tensor is overwritten, its copy
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []  # of what it overwrites
        self.outputs: list[tuple[str, torch.Tensor]] = []
        self._versions: list[int] = []  # of the inputs, to tell whether they were overwritten since
        self.unsaved: set[str] = set()  # names of inputs that are not as they were before the call
        self.number = self.step = self.answered = 0
        self.site = _NOWHERE

    def take_inputs(self) -> None:
        """Before the call is made: what it overwrites is copied, within limits."""
        plan = self.plan
        copied = 0
        for argument, value in self.arguments:
            position = plan.positions[argument]
            for name, tensor in named_tensors(f"{INPUT}/{argument}", value):
                if position in plan.lost:
                    self.unsaved.add(name)
                elif position in plan.written and is_number(tensor) and not why_unreadable(tensor):
                    copied += tensor.nbytes
                    if copied <= MOST_COPIED:
                        with unobserved():
                            self.copies.append((tensor, tensor.detach().clone()))
                        tensor = self.copies[-1][1]
                    else:
                        self.unsaved.add(name)
                self.inputs.append((name, tensor))
                self._versions.append(version_of(tensor))

    def take_outputs(self, result: Any) -> None:
        """After it: results, then arguments that it wrote to; those keep their names where it answers with them."""
        written = {id(tensor): name for name, tensor in self.written_tensors()} if self.plan.written else {}
        results = result if isinstance(result, (list, tuple)) else (result,)
        for place, value in enumerate(results):
            for name, tensor in named_tensors(f"{OUTPUT}/output_{place}", value):
                if is_number(tensor):
                    self.outputs.append((written.pop(id(tensor), name), tensor))
        self.answered = len(self.outputs)
        if written:
            for name, tensor in self.written_tensors():
                if id(tensor) in written and is_number(tensor):
                    self.outputs.append((name, tensor))

    def written_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The arguments that it writes to, themselves."""
        for argument, value in self.arguments:
            if self.plan.positions[argument] in self.plan.written:
                yield from named_tensors(f"{OUTPUT}/{argument}", value)

    def numbers(self) -> Iterator[float]:
        """The scalars that it was given, those of lists included."""
        return _numbers(value for _, value in self.arguments)

    def read_inputs(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The inputs that the operator has read and that are still as they were."""
        for place, (name, tensor) in enumerate(self.inputs):
            if name not in self.unsaved and version_of(tensor) == self._versions[place]:
                yield name, tensor

    def keep(self, original: torch.Tensor, copy: torch.Tensor) -> None:
        """A tensor is about to be overwritten by another call: go on with a copy of it."""
        for place, (name, tensor) in enumerate(self.inputs):
            if tensor is original and version_of(tensor) == self._versions[place]:
                self.inputs[place] = (name, copy)
                self._versions[place] = version_of(copy)
        for place, (name, tensor) in enumerate(self.outputs):
            if tensor is original:
                self.outputs[place] = (name, copy)

    def nbytes(self) -> int:
        """What it keeps from being freed, at most."""
        return sum(tensor.nbytes for _, tensor in (*self.inputs, *self.outputs) if not why_unreadable(tensor))

    def seen(self, inputs: Sequence[TensorFigures], outputs: Sequence[TensorFigures]) -> CallFigures:
        """The same without its tensors."""
        site = self.site
        return CallFigures(
            self.number, self.plan.operator, self.step, site.phase, site.model, site.module, site.place, site.node,
            tuple(inputs), tuple(outputs),
        )  # fmt: skip


def is_checked(plan: OperatorPlan) -> bool:
    """Whether the operator computes something, and its results are there when it returns."""
    return not (plan.is_skipped or plan.is_view or plan.uninitialised or plan.communicates)


def is_number(tensor: torch.Tensor) -> bool:
    """Whether it could hold what is not finite."""
    return tensor.is_floating_point() or tensor.is_complex()


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        if isinstance(value, (float, int)):
            yield float(value)
        elif isinstance(value, complex):
            yield from (value.real, value.imag)
        elif isinstance(value, (list, tuple)):
            yield from _numbers(value)


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MOST_KNOWN = 20_000  # tensors
_NOTHING = Statistics(0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0)


class KnownFigures:
    """What is known of the tensors of a process. `on_host`: the types of devices whose memory the host can read."""

    def __init__(self, on_host: frozenset[str]) -> None:
        self._layouts = Layouts(on_host)
        self._reader = MemoryReader()
        self._row = ctypes.create_string_buffer(ROW.size)
        # by the numbers of tensors, with their versions; a number may be used again once its tensor is gone
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, Statistics]] = {}

    def of_input(self, name: str, tensor: torch.Tensor) -> TensorFigures:
        """What is known of it, or can be seen from here."""
        layout = self.layout(tensor)
        known = None
        if is_number(tensor) and not layout.unread:
            kept = self._known.get(id(tensor))
            if kept is not None and kept[0]() is tensor and kept[1] == version_of(tensor):
                known = kept[2]
            elif layout.on_host:
                known = self._look(tensor, layout)
                self._remember(tensor, known)
        return TensorFigures(name, layout.dtype, layout.shape, known)

    def of_output(self, name: str, tensor: torch.Tensor, known: Statistics | None = None) -> TensorFigures:
        """Of a result: autograd counts a write only after the call, so what was known of it counts no longer."""
        layout = self.layout(tensor)
        if known is None and layout.on_host and not layout.unread:
            known = self._look(tensor, layout)
        self._remember(tensor, known)
        return TensorFigures(name, layout.dtype, layout.shape, known)

    def exact(self, name: str, tensor: torch.Tensor) -> TensorFigures:
        """The same of a tensor of any device, looked at anew: it may have been written to behind autograd's back."""
        layout = self.layout(tensor)
        is_readable = is_number(tensor) and not layout.unread
        return TensorFigures(
            name, layout.dtype, layout.shape, self._look(tensor, layout) if is_readable else None
        )

    def layout(self, tensor: torch.Tensor) -> TensorLayout:
        """Its dtype, shape and device."""
        return self._layouts.of(tensor) if type(tensor) in _PLAIN else self._layouts.of_any(tensor)

    def is_on_host(self, tensor: torch.Tensor) -> bool:
        """Whether the processor can read its memory."""
        return self.layout(tensor).on_host

    def _look(self, tensor: torch.Tensor, layout: TensorLayout) -> Statistics | None:
        if not layout.elements:
            return _NOTHING
        try:
            if not tensor.data_ptr():  # it was given back
                return None
        except (RuntimeError, NotImplementedError):  # wrappers never had any
            return None
        address = self._reader.address(tensor, layout)
        statistics_into(address, layout.dtype, layout.elements, ctypes.addressof(self._row))
        return decode(self._row)

    def _remember(self, tensor: torch.Tensor, statistics: Statistics | None) -> None:
        if statistics is None:
            return
        if len(self._known) > _MOST_KNOWN:
            self._known = {number: known for number, known in self._known.items() if known[0]() is not None}
        self._known[id(tensor)] = (weakref.ref(tensor), version_of(tensor), statistics)


def fetched(tensor: torch.Tensor) -> torch.Tensor:
    """On the host, as it is now."""
    with unobserved():
        return tensor.detach().cpu()


# Looks at results on a device that computes by itself: reductions there, fetched together once in a
# while.

MOST_CALLS = 256  # that wait for their results to be fetched
MOST_BYTES = 1 << 30  # that they may keep from being freed
_BLOCK = 256  # tensors
_Key = tuple[torch.device, torch.dtype]


class Slots:
    """Memory on a device for the smallest value, the largest value and the norm of tensors of one dtype."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self._device, self._dtype = device, dtype
        self._blocks: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._places: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._counts: list[int] = []

    def look(self, tensor: torch.Tensor) -> int:
        """Have it looked at; answers its slot."""
        slot = len(self._counts)
        if slot == len(self._places):
            self._grow()
        low, high, norm = self._places[slot]
        torch.aminmax(tensor, out=(low, high))
        torch.linalg.vector_norm(tensor, dtype=norm.dtype, out=norm)
        self._counts.append(tensor.numel())
        return slot

    def _grow(self) -> None:
        extremes = torch.zeros(_BLOCK, 2, dtype=self._dtype, device=self._device)
        # squares of half precision overflow early
        wide = self._dtype if self._dtype is torch.float64 else torch.float32
        norms = torch.zeros(_BLOCK, dtype=wide, device=self._device)
        self._blocks.append((extremes, norms))
        self._places += [(extremes[row, 0], extremes[row, 1], norms[row]) for row in range(_BLOCK)]

    def fetch(self) -> list[Statistics]:
        """Of all slots in use, which are free afterwards. Counts say only whether there are any."""
        if not self._counts:
            return []
        used = self._blocks[: (len(self._counts) - 1) // _BLOCK + 1]
        extremes = [row for block, _ in used for row in block.cpu().double().tolist()]
        norms = [norm for _, block in used for norm in block.cpu().double().tolist()]
        counts, self._counts = self._counts, []
        found = []
        for count, (low, high), norm in zip(counts, extremes, norms, strict=False):
            has_nan = math.isnan(low) or math.isnan(high)
            has_infinity = math.isinf(low) or math.isinf(high)
            rms = norm / math.sqrt(count) if count else 0.0
            found.append(Statistics(count, int(has_nan), int(has_infinity), 0, low, high, 0.0, rms, 0))
        return found


class PendingCalls:
    """Calls whose results are being looked at; `judge` gets each with its figures once they are known."""

    def __init__(self, judge: Callable[[CheckedCall, dict[str, Statistics]], None]) -> None:
        self._judge = judge
        self._slots: dict[_Key, Slots] = {}
        self._calls: list[tuple[CheckedCall, list[tuple[str, _Key, int]]]] = []
        self._held: set[int] = set()  # tensors of those calls
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: CheckedCall) -> None:
        """Have its results looked at."""
        looked: list[tuple[str, _Key, int]] = []
        with unobserved():
            for name, tensor in call.outputs:
                if tensor.numel() and not why_unreadable(tensor):
                    plain = tensor.detach()
                    if plain.is_complex():
                        plain = torch.view_as_real(plain.resolve_conj())
                    key = (plain.device, plain.dtype)
                    slots = self._slots.setdefault(key, Slots(*key))
                    looked.append((name, key, slots.look(plain)))
        self._calls.append((call, looked))
        self._held.update(id(tensor) for _, tensor in (*call.inputs, *call.outputs))
        self._nbytes += call.nbytes()
        if len(self._calls) >= MOST_CALLS or self._nbytes > MOST_BYTES:
            self.flush()

    def before_write(self, call: CheckedCall) -> None:
        """What this call is about to overwrite, calls that wait may still need: they get its copy. Where there is
        none, since the call does not read it, they are judged now."""
        copied = {id(original) for original, _ in call.copies}
        lost = {id(tensor) for _, tensor in call.written_tensors()} - copied
        if lost & self._held:
            self.flush()
        elif copied & self._held:
            for original, copy in call.copies:
                for waiting, _ in self._calls:
                    waiting.keep(original, copy)

    def flush(self) -> None:
        """Wait for the device, and judge all that were added, in their order."""
        with unobserved():
            known = {key: slots.fetch() for key, slots in self._slots.items()}
        calls, self._calls, self._held, self._nbytes = self._calls, [], set(), 0
        for call, looked in calls:
            self._judge(call, {name: known[key][slot] for name, key, slot in looked})
