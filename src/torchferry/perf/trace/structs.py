"""The events of a trace file as it spells them: only the fields that an analysis asks for are decoded."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

Number: TypeAlias = int | float | str | None
ABSENT = msgspec.Raw()


class Args(msgspec.Struct, frozen=True, gc=False):
    """An event's `args`. What stays raw is decoded once per distinct text, not once per event."""

    external: Number = msgspec.field(name="External id", default=None)
    external_of_2021: Number = msgspec.field(name="external id", default=None)
    correlation: Number = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=ABSENT)
    types: msgspec.Raw = msgspec.field(name="Input type", default=ABSENT)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=ABSENT)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=ABSENT)
    stack: msgspec.Raw = msgspec.field(name="Call stack", default=ABSENT)
    nbytes: Number = msgspec.field(name="bytes", default=None)
    changed_by: Number = msgspec.field(name="Bytes", default=None)  # of memory events
    allocated: Number = msgspec.field(name="Total Allocated", default=None)
    reserved: Number = msgspec.field(name="Total Reserved", default=None)
    device_type: Number = msgspec.field(name="Device Type", default=None)
    device_id: Number = msgspec.field(name="Device Id", default=None)
    task_type: str = msgspec.field(name="Task Type", default="")
    name: Any = None  # of metadata
    labels: Any = None


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: Number = None
    tid: Number = None
    ts: Number = None
    dur: Number = None
    id: Number = None
    args: Args | None = NO_ARGS


class ExactEvent(Event, gc=False):
    """Times since 1970 in microseconds with a fraction do not fit a float."""

    ts: Decimal | None = None  # type: ignore[assignment]  # narrower on purpose
