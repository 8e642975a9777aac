"""Decodes pieces of a trace's text into events; what is damaged is counted and left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

from torchferry.traces.chunks import Chunks, after_separators, single_events
from torchferry.traces.columns import LARGEST_EXACT

# The events of a trace file as it spells them: only the fields that an analysis asks for are decoded.

Number: TypeAlias = int | float | str | None
ABSENT = msgspec.Raw()


class Args(msgspec.Struct, frozen=True, gc=False):
    """An event's `args`. What stays raw is decoded once per distinct text, not once per event."""

    external: Number = msgspec.field(name="External id", default=None)
    external_of_2021: Number = msgspec.field(name="external id", default=None)
    correlation: Number = None
    sequence: Number = msgspec.field(name="Sequence number", default=None)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=ABSENT)
    types: msgspec.Raw = msgspec.field(name="Input type", default=ABSENT)
    types_of_old: msgspec.Raw = msgspec.field(name="Input Types", default=ABSENT)
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


def decoded_json(raw: bytes) -> Any:
    """What stayed raw; None where it is no JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_of(value: Any) -> str:
    """A number or a text as text; "" for None: profilers write 25738 and "25738" for the same thread."""
    return "" if value is None else str(value)


class TraceEvent(msgspec.Struct, gc=False):
    """One event of a trace."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: Number = None
    tid: Number = None
    ts: Number = None
    dur: Number = None
    id: Number = None
    args: Args | None = NO_ARGS


class ExactEvent(TraceEvent, gc=False):
    """Times since 1970 in microseconds with a fraction do not fit a float."""

    ts: Decimal | None = None  # type: ignore[assignment]  # narrower on purpose


_NUMBERS = {field.encode_name for field in msgspec.structs.fields(Args) if field.type == Number}
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SAMPLE = 256  # events of a piece that tell how its times are written


class Decoder:
    """Iterates over lists of events."""

    def __init__(self, chunks: Chunks) -> None:
        self.damaged = 0
        self._chunks = chunks
        self._decoder = msgspec.json.Decoder(list[TraceEvent])
        self._is_exact = False

    def __iter__(self) -> Iterator[list[TraceEvent]]:
        for chunk in self._chunks:
            before = self.damaged
            events = self._decode(chunk)
            sample = events[:: max(1, len(events) // _SAMPLE)]
            if not self._is_exact and any(
                isinstance(event.ts, float) and event.ts > LARGEST_EXACT for event in sample
            ):
                self._is_exact = True
                self._decoder = msgspec.json.Decoder(list[ExactEvent], strict=False)
                self.damaged = before
                events = self._decode(chunk)
            yield events

    def _decode(self, chunk: bytes) -> list[TraceEvent]:
        try:
            return self._decoder.decode(b"[" + chunk + b"]")
        except _UNREADABLE:
            found: list[TraceEvent] = []
            for piece in single_events(chunk):
                try:
                    found += self._decoder.decode(b"[" + piece + b"]")
                except _UNREADABLE:
                    found += self._repaired(piece)
            return found

    def _repaired(self, piece: bytes) -> Iterator[TraceEvent]:
        """Profilers write NaN, bytes that are no UTF-8, control characters, and numbers where texts are due."""
        text = piece.decode("utf-8", "replace")
        exact = Decimal if self._is_exact else None
        decoder = json.JSONDecoder(strict=False, parse_float=exact, parse_constant=lambda _: None)
        position = after_separators(text, 0)
        while position < len(text):
            try:
                value, end = decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                self.damaged += 1
                return
            try:
                yield _event(value, ExactEvent if self._is_exact else TraceEvent)
            except (ValueError, TypeError, RecursionError, msgspec.ValidationError):
                self.damaged += 1
            position = after_separators(text, end)


def _event(read: Any, kind: type[TraceEvent]) -> TraceEvent:
    if not isinstance(read, dict):
        raise TypeError("an event is an object")
    read["args"] = read["args"] if isinstance(read.get("args"), dict) else {}
    for key in ("ph", "name", "cat"):
        read[key] = "" if read.get(key) is None else str(read[key])
    for key in _NUMBERS & read["args"].keys():
        if not isinstance(read["args"][key], (int, float, str)):
            del read["args"][key]
    try:
        encoded = msgspec.json.encode(read)
    except UnicodeEncodeError:  # halves of characters
        encoded = json.dumps(read, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return msgspec.json.Decoder(kind, strict=False).decode(encoded)
