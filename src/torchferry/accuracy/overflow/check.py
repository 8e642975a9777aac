"""Checks one call after the other, and decides what an overflow means: found, skipped by a GradScaler, intended."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torchferry.accuracy.model import Statistics
from torchferry.accuracy.overflow.figures import CheckedCall, KnownFigures, PendingCalls, fetched, is_number
from torchferry.accuracy.overflow.model import (
    GIVEN,
    HALF_LIMIT,
    HALF_ZERO,
    LOWEST,
    TABLE,
    CallFigures,
    Largest,
    OverflowEvent,
    OverflowKind,
    Standing,
    TensorFigures,
    Underflow,
)
from torchferry.accuracy.record.layout import host_devices
from torchferry.observe.modes import unobserved
from torchferry.observe.operators import base_name
from torchferry.observe.steps import is_skipping, scale_of
from torchferry.observe.where import BACKWARD, FORWARD, OPTIMIZER

# Whether a call made what is not finite, only passed it on, or was meant to make it.

# Where these are infinite though their inputs are finite: tables of positions begin with log(0), masks are made of
# log(0) and log(1), and PyTorch draws truncated normal numbers with erfinv(-1), which it cuts off afterwards.
_POLES = {"log": (0.0,), "log2": (0.0,), "log10": (0.0,), "log1p": (-1.0,), "erfinv": (-1.0, 1.0)}
_ADDING = frozenset({"add", "sub"})
_FILLING = ("full", "fill", "where", "pad", "scalar_tensor", "nan_to_num")


def kind_of(
    call: CheckedCall, inputs: Iterable[TensorFigures], outputs: Iterable[TensorFigures]
) -> OverflowKind | None:
    """What it made of finite inputs; None: nothing, or it had it from its inputs.

    NaN from infinities is made here: a softmax of a row that is masked as a whole, infinity minus infinity.
    """
    found = [each.statistics for each in outputs if each.statistics is not None]
    given = [each.statistics for each in inputs if each.statistics is not None]
    numbers = list(call.numbers())
    if any(each.nans for each in given) or any(map(math.isnan, numbers)):
        return None
    if any(each.nans for each in found):
        return OverflowKind.NAN
    has_infinity = any(each.infinities for each in given) or any(map(math.isinf, numbers))
    is_infinite = any(each.infinities for each in found)
    return OverflowKind.INFINITE if is_infinite and not has_infinity else None


def is_given_nan(call: CheckedCall, inputs: Iterable[TensorFigures]) -> bool:
    """Whether there is NaN in what it was given to compute with, and not only to write, as `full` does."""
    if any(map(math.isnan, call.numbers())):
        return not any(word in base_name(call.plan.func) for word in _FILLING)
    return any(each.statistics is not None and each.statistics.nans for each in inputs)


def exceeds_half(
    call: CheckedCall, inputs: Iterable[TensorFigures], outputs: Iterable[TensorFigures]
) -> bool:
    """Whether it made values that float16 can't hold of values that it can. Optimizers keep their own precision."""
    if call.site.phase == OPTIMIZER or not any(map(_is_beyond_half, outputs)):
        return False
    return not any(map(_is_beyond_half, inputs)) and not any(
        abs(each) > HALF_LIMIT for each in call.numbers()
    )


def _is_beyond_half(figures: TensorFigures) -> bool:
    statistics = figures.statistics
    return statistics is not None and largest(statistics) > HALF_LIMIT


def largest(statistics: Statistics) -> float:
    """The largest magnitude among finite elements; 0 where there are none."""
    return statistics.largest if math.isfinite(statistics.largest) else 0.0


def why_intended(call: CheckedCall) -> str:
    """Why its infinities are taken for intended; "": they are not."""
    base = base_name(call.plan.func).rstrip("_")
    if base in _ADDING:
        return LOWEST if _adds_lowest(call) else ""
    if base in _POLES:
        return TABLE if _is_at_poles(call, _POLES[base]) else ""
    return ""


def _adds_lowest(call: CheckedCall) -> bool:
    """`scores + mask`, where the mask holds the dtype's lowest number: what lies below it becomes -inf."""
    (_, output), *others = call.outputs
    inputs = [fetched(tensor) for _, tensor in call.read_inputs() if is_number(tensor)]
    if others or len(inputs) != 2:
        return False
    result = fetched(output)
    lowest = torch.finfo(result.dtype).min if result.is_floating_point() else -math.inf
    is_masked = (inputs[0] <= lowest) | (inputs[1] <= lowest)
    is_infinite = result.isinf()
    return bool((result[is_infinite] < 0).all()) and bool(is_masked.expand_as(result)[is_infinite].all())


def _is_at_poles(call: CheckedCall, poles: tuple[float, ...]) -> bool:
    inputs = [tensor for _, tensor in call.read_inputs()]
    if len(inputs) != 1 or inputs[0].requires_grad or any(each.requires_grad for _, each in call.outputs):
        return False
    values, result = fetched(inputs[0]), fetched(call.outputs[0][1])
    at_pole = torch.zeros(values.shape, dtype=torch.bool)
    for pole in poles:
        at_pole |= values == pole
    return bool(at_pole[result.isinf()].all())


# Which results would become zeros in float16.

_WIDE = (torch.float32, torch.float64, torch.bfloat16)
_SMALLEST_SHARE = 0.01
_MOST = 5


class Underflows:
    """The operators and modules that would lose the most."""

    def __init__(self) -> None:
        self._worst: dict[tuple[str, str, str], Underflow] = {}

    def look(self, call: CheckedCall, seen: CallFigures) -> None:
        """At results of the host; optimizers keep their own precision. Call it inside `unobserved()`."""
        if call.site.phase == OPTIMIZER:
            return
        for _, tensor in call.outputs:
            if tensor.dtype in _WIDE and tensor.device.type == "cpu" and tensor.numel():
                sizes = tensor.detach().abs()
                present = int(sizes.count_nonzero())
                lost = int(((sizes > 0) & (sizes < HALF_ZERO)).sum())
                share = lost / present if present else 0.0
                key = (seen.operator, seen.module, seen.place)
                if share >= _SMALLEST_SHARE and (key not in self._worst or self._worst[key].share < share):
                    self._worst[key] = Underflow(share, seen)

    def worst(self) -> tuple[Underflow, ...]:
        """The operators that would lose the most, the greatest share first."""
        return tuple(sorted(self._worst.values(), key=lambda each: -each.share)[:_MOST])


_HALF = "float16"
_MOST_EVENTS = 50
_PATIENCE = 10  # steps that a GradScaler may skip one after the other; the first scale needs 5 or so
_SMALLEST_SCALE = 1.0  # where a scale of 1 overflows, the scale is not the reason


@dataclass(frozen=True)
class CheckOptions:
    """What the check of a process looks for."""

    last: int = 20  # calls before the event that are told of
    half: bool = False  # also what would overflow in float16
    strict: bool = False  # also what a GradScaler handles, and what seems intended
    host_devices: frozenset[str] = field(default_factory=host_devices)


class OverflowCheck:
    """The check of one process. `save` gets the call of an event while its inputs are there, and answers the file's name;
    `found` is called with each overflow that is one, and may end the program."""

    def __init__(
        self,
        options: CheckOptions,
        save: Callable[[CheckedCall], str],
        found: Callable[[OverflowEvent], None],
    ) -> None:
        self._options = options
        self._save = save
        self._found = found
        self._known = KnownFigures(options.host_devices)
        self._pending = PendingCalls(self._judge)
        self._ring: deque[CallFigures] = deque(maxlen=options.last)
        self._lock = threading.RLock()
        self._scaler: Any = None  # that has scaled a loss of this step
        self._held: OverflowEvent | None = None  # an overflow in scaled gradients: the scaler decides
        self._knows_nan = False  # one was made, or is meant to be there: NaN that comes in is no news
        self._underflows = Underflows()
        self._intended: set[tuple[str, str]] = set()
        self.events: list[OverflowEvent] = []
        self.operators = self.skipped_steps = self._skipped_in_a_row = 0
        self.largest: Largest | None = None

    def before(self, call: CheckedCall) -> None:
        """Take the inputs of a call that is about to be made."""
        call.take_inputs()
        if call.plan.written and len(self._pending):
            self._pending.before_write(call)

    def after(self, call: CheckedCall, result: Any) -> None:
        """Take what a call has answered, and judge it, or put it aside until its device has computed."""
        call.take_outputs(result)
        with self._lock:
            self.operators += 1
            call.number = self.operators
            if not call.outputs:
                return
            # a device may still copy to the host, for a program that will wait for it later
            if call.plan.may_be_under_way and dict(call.arguments).get("non_blocking"):
                if not all(self._known.is_on_host(tensor) for _, tensor in call.inputs):
                    return
            if all(self._known.is_on_host(tensor) for _, tensor in call.outputs):
                self._judge(call, {})
            else:
                self._pending.add(call)

    def flush(self) -> None:
        """Judge all that was called."""
        with self._lock:
            if len(self._pending):
                self._pending.flush()

    def scaled(self, scaler: Any, _given: Any, _answered: Any) -> None:
        """Note that a GradScaler has scaled a loss."""
        self._scaler = scaler

    def settle(self) -> None:
        """The step has ended: an overflow that waited for this is judged."""
        self.flush()
        scaler, self._scaler = self._scaler, None
        held, self._held = self._held, None
        is_skipped = scaler is not None and is_skipping(scaler)
        self.skipped_steps += is_skipped
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if is_skipped else 0
        if held is not None:
            is_normal = (
                is_skipped and self._skipped_in_a_row < _PATIENCE and (held.scale or 0.0) > _SMALLEST_SCALE
            )
            self._note(replace(held, standing=Standing.SKIPPED if is_normal else Standing.FOUND))

    def leave(self) -> None:
        """The program ends in the middle of a step."""
        self.flush()
        held, self._held = self._held, None
        if held is not None:
            self._note(replace(held, standing=Standing.SKIPPED))

    @property
    def underflow(self) -> tuple[Underflow, ...]:
        """Where float16 would lose the most."""
        return self._underflows.worst()

    def _judge(self, call: CheckedCall, known: dict[str, Statistics]) -> None:
        outputs = [self._known.of_output(name, tensor, known.get(name)) for name, tensor in call.outputs]
        inputs = [self._known.of_input(name, tensor) for name, tensor in call.read_inputs()]
        seen = call.seen(inputs, outputs)
        for each in outputs:  # who comes closest to the limit of float16
            if each.statistics is not None and (each.dtype == _HALF or self._options.half):
                size = largest(each.statistics)
                if size > (self.largest.value if self.largest else 0.0):
                    self.largest = Largest(size, seen)
        is_odd = not all(each.finite for each in outputs)
        if self._options.half or is_odd:
            with unobserved():
                self._look_closely(call, seen, is_odd)
        self._ring.append(seen)

    def _look_closely(self, call: CheckedCall, seen: CallFigures, is_odd: bool) -> None:
        if self._options.half:
            self._underflows.look(call, seen)
        if is_odd or any(
            each.statistics is not None and HALF_LIMIT < each.statistics.largest < math.inf
            for each in seen.outputs
        ):
            event = self._event(call)
            if event is not None:
                self._decide(call, event)

    def _event(self, call: CheckedCall) -> OverflowEvent | None:
        """What it made, if it made something; now every input is looked at."""
        inputs = [self._known.exact(name, tensor) for name, tensor in call.read_inputs()]
        outputs = [self._known.exact(name, tensor) for name, tensor in call.outputs]
        kind = kind_of(call, inputs, outputs)
        if kind is None and self._options.half and exceeds_half(call, inputs, outputs):
            kind = OverflowKind.HALF
        event = OverflowEvent(
            kind or OverflowKind.NAN, call.seen(inputs, outputs), before=tuple(self._ring), time=time.time()
        )
        if kind is None:
            is_new = not self._knows_nan and is_given_nan(call, inputs)
            self._knows_nan = self._knows_nan or any(map(math.isnan, call.numbers()))
            return replace(event, why=GIVEN) if is_new else None
        why = why_intended(call) if kind is OverflowKind.INFINITE and not self._options.strict else ""
        return replace(event, standing=Standing.INTENDED, why=why) if why else event

    def _decide(self, call: CheckedCall, event: OverflowEvent) -> None:
        self._knows_nan = self._knows_nan or event.kind is OverflowKind.NAN
        if event.standing is Standing.INTENDED:
            place = (event.call.operator, event.call.place)
            if place not in self._intended:
                self._intended.add(place)
                self._note(replace(event, before=()))
            return
        unsaved = {name for name, _ in call.inputs} - {name for name, _ in call.read_inputs()}
        lost = {call.plan.names[position] for position in call.plan.lost}  # not read by the operator at all
        missed = tuple(name for name in sorted(unsaved) if name.split("/")[1] not in lost)
        event = replace(event, unsaved=missed)
        if not self._may_be_of_scale(event):
            self._note(self._saved(call, event))
        elif self._held is None and event.kind is not OverflowKind.HALF:
            self._held = self._saved(call, replace(event, scale=scale_of(self._scaler)))

    def _may_be_of_scale(self, event: OverflowEvent) -> bool:
        """Whether the scale of the loss may be the reason, as a GradScaler expects it. It is chosen for float16: what
        overflows in a wide dtype has another one."""
        if self._scaler is None or self._options.strict:
            return False
        if event.why == GIVEN:  # from another process
            return event.call.phase != FORWARD
        tensors = (*event.call.inputs, *event.call.outputs)
        return event.call.phase == BACKWARD and any(each.dtype == _HALF for each in tensors)

    def _saved(self, call: CheckedCall, event: OverflowEvent) -> OverflowEvent:
        """With its data, unless an earlier one has been saved."""
        if any(each.standing is Standing.FOUND for each in self.events):
            return event
        return replace(event, record=self._save(call))

    def _note(self, event: OverflowEvent) -> None:
        if len(self.events) < _MOST_EVENTS:
            self.events.append(event)
        if event.standing is Standing.FOUND:
            self._found(event)
