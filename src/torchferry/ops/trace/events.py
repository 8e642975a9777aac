"""The events of a trace that tell of operators: what the profilers of all years call them, brought to one form."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, NamedTuple

from torchferry.traces.categories import flow_device, is_launch

_HOST_CATEGORIES = ("cpu_op", "Operator", "user_annotation")
_PYTHON_CATEGORY = "python_function"
_DEVICE_CATEGORIES = ("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset")
OLD_PROFILER = "CPU functions"  # the process, in what torch.autograd.profiler wrote before it was rebuilt
_LOOKS_LIKE_OPERATOR = re.compile(r"\w+::\w+")


_MOST_DIGITS = 30  # of a time
_LARGEST = 10**_MOST_DIGITS
_PLAIN_TIME = re.compile(r"\s*(\d{1,30})(?:\.(\d*))?\s*$", re.ASCII)


class Kind(Enum):
    """What an event tells of."""

    HOST = "host"  # an operator, a step of autograd, an annotation: the names tell them apart
    PYTHON = "python"  # a call of a Python function or a module
    LAUNCH = "launch"  # the host hands work to the device
    DEVICE = "device"  # the device works
    UNNAMED = "unnamed"  # of no category: the device's, if a flow says so
    FLOW_START = "flow_start"
    FLOW_END = "flow_end"


_FLOWS = (Kind.FLOW_START, Kind.FLOW_END)


class Inputs(NamedTuple):
    """What an operator was called with, as the profiler wrote it: a list each, one item per argument."""

    dims: Any = None
    types: Any = None
    strides: Any = None
    concrete: Any = None


_NO_INPUTS = Inputs()


class Event(NamedTuple):
    """Times are nanoseconds."""

    kind: Kind
    name: str
    category: str
    thread: tuple[str, str]  # process and thread, or device and stream
    start: int
    duration: int
    link: str = ""  # what connects a launch or a flow with its work on the device
    external: str = ""  # the operator's number
    sequence: int = -1  # autograd's number, the same for the operator and its backward step
    inputs: Inputs = _NO_INPUTS
    stack: str = ""  # Python's frames, the innermost first, divided by semicolons

    @property
    def end(self) -> int:
        """When it was over."""
        return self.start + self.duration


class EventReader:
    """Makes events of the objects in the file."""

    def __init__(self) -> None:
        self.damaged = 0  # events that lack what every event must have
        self._threads: dict[tuple[str, str], tuple[str, str]] = {}
        self._inputs: dict[str, Inputs] = {}  # thousands of calls have the same: kept once

    def read(self, raw: Mapping[str, Any]) -> Event | None:
        """The event, or None if it tells nothing of operators."""
        kind = _kind(raw)
        if kind is None:
            return None
        start = _nanoseconds(raw.get("ts"))
        duration = _nanoseconds(raw.get("dur", 0))
        if start is None or duration is None or duration < 0:
            self.damaged += 1
            return None
        given = raw.get("args")
        details = given if isinstance(given, dict) else {}
        thread = (str(raw.get("pid", "")), str(raw.get("tid", "")))
        event = Event(
            kind,
            sys.intern(str(raw.get("name", ""))),
            sys.intern(str(raw.get("cat", ""))),
            self._threads.setdefault(thread, thread),
            start,
            duration,
            link=_text(raw.get("id") if kind in _FLOWS else details.get("correlation")),
            external=_text(details.get("External id", details.get("external id"))),
        )
        return self._with_details(event, details) if kind is Kind.HOST and details else event

    def _with_details(self, event: Event, details: Mapping[str, Any]) -> Event:
        sequence = details.get("Sequence number")
        inputs = Inputs(
            details.get("Input Dims"),
            details.get("Input type", details.get("Input Types")),
            details.get("Input Strides"),
            details.get("Concrete Inputs"),
        )
        return event._replace(
            sequence=sequence if isinstance(sequence, int) else -1,
            inputs=self._inputs.setdefault(repr(inputs), inputs),
            stack=sys.intern(_text(details.get("Call stack"))),
        )


def _kind(raw: Mapping[str, Any]) -> Kind | None:
    phase, category = raw.get("ph"), raw.get("cat", "")
    if not isinstance(category, str):
        return None
    if phase in ("s", "f"):
        leads_to_device = flow_device(category)
        return (Kind.FLOW_START if phase == "s" else Kind.FLOW_END) if leads_to_device else None
    if phase != "X":
        return None
    if category in _HOST_CATEGORIES:
        return Kind.HOST
    if category == _PYTHON_CATEGORY:
        return Kind.PYTHON
    if category in _DEVICE_CATEGORIES:
        return Kind.DEVICE
    if is_launch(category):
        return Kind.LAUNCH
    if category:
        return None
    is_host = raw.get("pid") == OLD_PROFILER or _LOOKS_LIKE_OPERATOR.match(str(raw.get("name")))
    return Kind.HOST if is_host else Kind.UNNAMED


def _nanoseconds(time: Any) -> int | None:
    """Of microseconds, as a number or text. Exact: nesting is told from times."""
    if isinstance(time, int):
        return time * 1000 if abs(time) < _LARGEST else None
    if not isinstance(time, str):
        return None
    if plain := _PLAIN_TIME.match(time):
        return int(plain[1]) * 1000 + int((plain[2] or "")[:3].ljust(3, "0"))
    try:
        number = Decimal(time)
        return int(number * 1000) if number.adjusted() < _MOST_DIGITS else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return "" if value is None else str(value)
